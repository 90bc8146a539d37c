"""The one writer of holds: kudos reserved for a cost not known yet, and each hold's one end.

`place`, `settle`, `end` and `void` are parts: they run in the transaction of what causes them, and lock accounts, which
come last in the lock order. A request that is refused after its hold was placed rolls the hold back with everything
else, or voids it. `lapse_batch` is the beat task's use case, for holds nobody ended.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection, transaction

from billing_app.errors import InsufficientKudos, UnknownAccounts
from billing_app.rules.accounts import HoldResolution, is_amount
from billing_app.selectors import holds
from billing_app.selectors.holds import HoldState
from billing_app.services import ledger
from billing_app.services.ledger import NewTransfer, Posting
from hordechat.infra import advisory_locks, batches, metrics, sql
from hordechat.infra.transactions import retry_on_conflict

MAX_KEY_CHARACTERS = 100
LAPSE_BATCH_ROWS = 500

NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Placement:
    """The row of `place_hold.sql`."""

    free_kudos: Decimal
    is_placed: bool


@dataclass(frozen=True, slots=True)
class Resolved:
    """A row of `resolve_holds.sql`: a hold this call ended."""

    key: str
    settled_kudos: Decimal


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a call of `settle` did."""

    settled_kudos: Decimal | None
    """What counts as used of the hold; None when it was not open: never placed, or ended before."""

    posting: Posting


def place(
    *, account_id: int, kudos: Decimal, key: str, cause: UUID, now: datetime, expires_at: datetime | None = None
) -> HoldState:
    """Reserve kudos, so that what they are for can be charged later; the free balance has to cover them.

    The key is derived from the cause (`upfront:<request id>`). A second call with it returns the first hold unchanged,
    be it open or resolved. `expires_at` cannot be moved later: give a moment after which the cause is gone for certain.

    Raises:
        InsufficientKudos: less than that is free; nothing was held.
        UnknownAccounts: there is no such account.
    """
    assert connection.in_atomic_block, "kudos are held in the transaction of what they are for"
    if not is_amount(kudos) or kudos == 0:
        raise ValueError(f"A hold reserves a positive amount of whole hundredths, not {kudos}.")
    if not 0 < len(key) <= MAX_KEY_CHARACTERS:
        raise ValueError(f"A hold's key has 1 to {MAX_KEY_CHARACTERS} characters.")
    placement = sql.find_one(
        sql.load(__file__, "place_hold.sql"),
        {
            "account_id": account_id,
            "key": key,
            "kudos": kudos,
            "cause": cause,
            "now": now,
            "expires_at": expires_at,
        },
        Placement,
    )
    if placement is None:
        raise UnknownAccounts([account_id])
    if placement.is_placed:
        return HoldState(
            key=key, account_id=account_id, kudos=kudos, expires_at=expires_at, resolution=None, settled_kudos=NOTHING
        )
    # A statement of its own: a hold of this key committed while the account was waited for is not in the first one's
    # snapshot. The account stays locked, so what is found here is what decided.
    first = holds.find(key=key)
    if first is None:
        raise InsufficientKudos(needed_kudos=kudos, free_kudos=placement.free_kudos)
    return first


def settle(*, key: str, kudos: Decimal, transfers: Sequence[NewTransfer], now: datetime) -> Settlement:
    """Post transfers and end the hold they were covered by: up to its amount counts as used, the rest is free again.

    `kudos` is what was charged in all for what the hold is for: these transfers, and those posted before while it was
    open. The transfers are posted whatever became of the hold; it ends in the same transaction or stays as it ended.

    All accounts are locked before the first is changed, so call this, like `ledger.post`, last and once.

    Raises:
        UnknownAccounts: a transfer names an account that does not exist; the transaction has to be rolled back.
    """
    assert connection.in_atomic_block, "a hold is settled in the transaction of what was charged"
    if not is_amount(kudos):
        raise ValueError(f"A hold is settled by whole hundredths, not {kudos}.")
    ended = _resolve(
        {key: kudos},
        resolution=HoldResolution.SETTLED,
        further_accounts=[
            int(account)
            for transfer in transfers
            for account in (transfer.debit_account, transfer.credit_account)
            if account > 0
        ],
        now=now,
    )
    posting = ledger.post(transfers, now=now)
    return Settlement(settled_kudos=ended[0].settled_kudos if ended else None, posting=posting)


def void(*, keys: Collection[str], now: datetime) -> frozenset[str]:
    """Free what some holds reserve, because what they are for will not happen; return the keys this call ended.

    Keys without a hold, and holds that were ended before, are passed over. Call this once in a transaction.
    """
    return end(charged=dict.fromkeys(keys, NOTHING), now=now)


def end(*, charged: Mapping[str, Decimal], now: datetime) -> frozenset[str]:
    """End some holds by what was charged of each while it was open: settled by that, or voided where it was nothing.

    Returns the keys this call ended. Keys without a hold, and holds that were ended before, are passed over. Call this
    once in a transaction.
    """
    assert connection.in_atomic_block, "a hold ends in the transaction of what ends its cause"
    if not charged:
        return frozenset()
    return frozenset(hold.key for hold in _resolve(charged, resolution=HoldResolution.VOIDED, now=now))


def lapse_all(*, now: datetime) -> int:
    """Free every hold past its expiry, batch by batch within a run's time, and return how many they were."""
    return batches.run_all(lambda: lapse_batch(now=now), full=LAPSE_BATCH_ROWS)


@retry_on_conflict
def lapse_batch(*, now: datetime, limit: int = LAPSE_BATCH_ROWS) -> int:
    """Free one batch of holds past their expiry and return how many they were.

    Two runs at once do the work of one: the second finds the batch's advisory lock taken and does nothing.
    """
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock("lapse holds"):
            return 0
        # An expiry never moves, so what was found without a lock is still overdue, unless it was resolved meanwhile.
        overdue = holds.list_overdue(now=now, limit=limit)
        lapsed = _resolve(dict.fromkeys(overdue, NOTHING), resolution=HoldResolution.LAPSED, now=now) if overdue else []
    metrics.LAPSED_HOLDS.inc(len(lapsed))
    return len(lapsed)


def _resolve(
    charged: Mapping[str, Decimal],
    *,
    resolution: HoldResolution,
    now: datetime,
    further_accounts: Sequence[int] = (),
) -> list[Resolved]:
    return sql.fetch_all(
        sql.load(__file__, "resolve_holds.sql"),
        {
            "keys": list(charged),
            "charged": list(charged.values()),
            "settled": HoldResolution.SETTLED.value,
            "resolution": resolution.value,
            "further_accounts": list(further_accounts),
            "now": now,
        },
        Resolved,
    )
