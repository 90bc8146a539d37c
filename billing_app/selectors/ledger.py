"""Questions about the ledger as a whole: do its sums agree with its transfers and holds?"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from django.db import connection, transaction

from billing_app.models import Transfer
from hordechat.infra import sql

SLICE_TRANSFERS = 250_000
"""How much of the ledger one statement adds up: a second or two, so that somebody who waits sees it move."""

NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Drift:
    """An account that keeps another sum than its transfers or its open holds add up to."""

    account_id: int
    posted_kudos: Decimal
    transferred_kudos: Decimal
    held_kudos: Decimal = NOTHING
    reserved_kudos: Decimal = NOTHING
    """What the account's open holds add up to; `held_kudos` is what the account says."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The ledger at one moment: sound when `total` is 0 and nothing drifted."""

    total: Decimal
    """All posted sums plus what the house accounts' transfers add up to: every kudos is owed by somebody."""

    accounts: int
    transfers: int
    open_holds: int
    drifted: tuple[Drift, ...]

    @property
    def is_sound(self) -> bool:
        """Whether every sum is what the transfers and holds say."""
        return not self.drifted and self.total == 0


@dataclass(frozen=True, slots=True)
class SliceSum:
    """A row of `slice_sums.sql`."""

    account_id: int
    kudos: Decimal
    transfers: int


@dataclass(frozen=True, slots=True)
class AccountSums:
    """A row of `account_sums.sql`."""

    account_id: int
    posted_kudos: Decimal
    held_kudos: Decimal
    reserved_kudos: Decimal
    open_holds: int


def reconcile(*, report: Callable[[float], None] | None = None) -> Reconciliation:
    """Compare every account's sums with its transfers and open holds. Drift is reported, never repaired by code.

    Reads the whole ledger, slice by slice in one snapshot; after each slice but the last, `report` is told the part
    that is done. An account that transfers name and no row has counts as drifted.
    """
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            # One snapshot for all slices, or a transfer posted meanwhile would look like drift.
            sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", {})
        transferred, transfers = _sum_transfers(report=report)
        accounts = sql.fetch_all(sql.load(__file__, "account_sums.sql"), {}, AccountSums)
    house_kudos = sum((kudos for account_id, kudos in transferred.items() if account_id < 0), NOTHING)
    return Reconciliation(
        total=sum((account.posted_kudos for account in accounts), house_kudos),
        accounts=len(accounts),
        transfers=transfers,
        open_holds=sum(account.open_holds for account in accounts),
        drifted=_list_drifted(accounts, transferred),
    )


def _sum_transfers(*, report: Callable[[float], None] | None) -> tuple[dict[int, Decimal], int]:
    last_id = Transfer.objects.order_by("-id").values_list("id", flat=True).first() or 0
    sums: dict[int, Decimal] = {}
    transfers = 0
    for after in range(0, last_id, SLICE_TRANSFERS):
        until = after + SLICE_TRANSFERS
        for row in sql.fetch_all(sql.load(__file__, "slice_sums.sql"), {"after": after, "until": until}, SliceSum):
            sums[row.account_id] = sums.get(row.account_id, NOTHING) + row.kudos
            transfers += row.transfers
        if report is not None and until < last_id:
            report(until / last_id)
    return sums, transfers


def _list_drifted(accounts: list[AccountSums], transferred: dict[int, Decimal]) -> tuple[Drift, ...]:
    drifted = [
        Drift(
            account.account_id,
            account.posted_kudos,
            transferred.get(account.account_id, NOTHING),
            account.held_kudos,
            account.reserved_kudos,
        )
        for account in accounts
        if account.posted_kudos != transferred.get(account.account_id, NOTHING)
        or account.held_kudos != account.reserved_kudos
    ]
    known = {account.account_id for account in accounts}
    drifted += [
        Drift(account_id, NOTHING, kudos)
        for account_id, kudos in transferred.items()
        if account_id > 0 and account_id not in known
    ]
    return tuple(sorted(drifted, key=lambda drift: drift.account_id))
