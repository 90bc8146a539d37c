"""The vocabulary of the ledger: which accounts there are, what moves kudos between them, and how low a balance goes."""

from decimal import Decimal
from enum import IntEnum, StrEnum

ANONYMOUS_USER_ID = 0
"""The one user all keyless callers share. It is falsy: compare it, never test it for truth."""

PUBLIC_KEY = "0000000000"
"""The API key of the anonymous user, printed in every client's manual."""

DEFAULT_CONCURRENCY = 30
ANONYMOUS_CONCURRENCY = 500
MAX_CONCURRENCY = 500
"""The most slots a moderator may give a user; the anonymous user has them all."""

assert DEFAULT_CONCURRENCY <= MAX_CONCURRENCY
assert ANONYMOUS_CONCURRENCY <= MAX_CONCURRENCY


HUNDREDTH = Decimal("0.01")
"""The smallest amount there is."""

AMOUNT_LIMIT = Decimal(10) ** 15
"""Amounts stay below: a digit less than a balance holds, so that no single one can overflow it."""


def is_amount(kudos: Decimal) -> bool:
    """Return whether the ledger holds this amount as it is: not negative, whole hundredths, below the limit."""
    return kudos.is_finite() and 0 <= kudos < AMOUNT_LIMIT and kudos == kudos.quantize(HUNDREDTH)


class AccountKind(StrEnum):
    """The two accounts every holder of an API key has."""

    BALANCE = "balance"
    """Kudos that can be spent."""

    ESCROW = "escrow"
    """What an owner who is not yet trusted has earned and does not have yet (shown as `evaluating_kudos`)."""


class HouseAccount(IntEnum):
    """The accounts of the horde itself: no rows, no running sum, so that no charge queues behind them.

    Negative, because the ids of users' accounts are positive and the ledger keeps both in one column.
    """

    TAX = -1
    """Receives what a request pays for being queued."""

    BURN = -2
    """Receives what a generation costs above what its worker earns."""

    MINT = -3
    """Pays out kudos that did not exist before."""


class TransferKind(StrEnum):
    """Why kudos moved."""

    START = "start"
    """What a new user begins with."""

    TAX = "tax"
    """A request was queued."""

    REPLY = "reply"
    """A reply was stored: from the requester to the worker's owner."""

    BURN = "burn"
    """A reply was stored: the part nobody earns."""

    FORGIVEN = "forgiven"
    """A debit went below the account's minimum: the horde made up the difference."""

    UPTIME = "uptime"
    """A worker was online for ten minutes: a reward to its owner."""

    PROMOTION = "promotion"
    """An owner became trusted: all of the escrow moved to the balance."""


class HoldResolution(StrEnum):
    """How a hold ended; it has none while its kudos are reserved."""

    SETTLED = "settled"
    """What it was for was charged: up to its amount counts as used, the rest is free again."""

    VOIDED = "voided"
    """What it was for will not happen."""

    LAPSED = "lapsed"
    """Nobody ended it in its time."""


def minimum_kudos(*, kind: AccountKind, is_anonymous: bool = False, is_pseudonymous: bool = False) -> Decimal:
    """Return the balance a debit never takes an account below.

    It is positive for users, so an account that starts at 0 is lifted to it by its first debit.
    """
    if kind is AccountKind.ESCROW:
        return Decimal(0)
    if is_anonymous:
        return Decimal(-50)
    return Decimal(14) if is_pseudonymous else Decimal(25)
