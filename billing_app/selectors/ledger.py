"""Questions about the ledger as a whole."""

from dataclasses import dataclass
from decimal import Decimal

from hordechat.infra import sql


@dataclass(frozen=True, slots=True)
class Drift:
    """An account whose posted sum differs from what its transfers add up to."""

    account_id: int
    posted_kudos: Decimal
    transferred_kudos: Decimal


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The ledger at one moment: sound when `total` is 0 and nothing drifted."""

    total: Decimal
    """All posted sums plus what the house accounts' transfers add up to: every kudos is owed by somebody."""

    accounts: int
    transfers: int
    drifted: tuple[Drift, ...]

    @property
    def is_sound(self) -> bool:
        """Whether every sum is what the transfers say."""
        return not self.drifted and self.total == 0


@dataclass(frozen=True, slots=True)
class ReconcileRow:
    """A row of `reconcile.sql`."""

    total: Decimal
    accounts: int
    transfers: int
    account_id: int | None
    posted_kudos: Decimal | None
    transferred_kudos: Decimal | None


def reconcile() -> Reconciliation:
    """Compare every account's posted sum with its transfers. Drift is reported, never repaired by code."""
    rows = sql.fetch_all(sql.load(__file__, "reconcile.sql"), {}, ReconcileRow)
    drifted = tuple(
        Drift(row.account_id, row.posted_kudos, row.transferred_kudos)
        for row in rows
        if row.account_id is not None and row.posted_kudos is not None and row.transferred_kudos is not None
    )
    return Reconciliation(total=rows[0].total, accounts=rows[0].accounts, transfers=rows[0].transfers, drifted=drifted)
