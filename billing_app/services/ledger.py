"""The ledger's one writer. Every kudos that moves goes through `post`; nothing else writes transfers or posted sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import connection

from billing_app.errors import UnknownAccounts
from billing_app.rules.accounts import HouseAccount, TransferKind, is_amount
from hordechat.infra import sql

MAX_KEY_CHARACTERS = 100
"""The column holds 120: the key of a forgiven amount is `forgiven:` and the key of the debit it answers."""


@dataclass(frozen=True, slots=True)
class NewTransfer:
    """Kudos to move, once: the key is derived from the cause (`reply:<generation id>`), so a repeat changes nothing.

    An account is a user's account id or a `HouseAccount`. Debit and credit may be the same account: an owner whose
    worker serves the owner's own request.
    """

    idempotency_key: str
    debit_account: int
    credit_account: int
    amount: Decimal
    kind: TransferKind
    cause: UUID | None = None

    def __post_init__(self) -> None:
        """Refuse what the columns would round, cut or confuse with the ledger's own entries."""
        if not is_amount(self.amount) or self.amount == 0:
            raise ValueError(f"A transfer moves a positive amount of whole hundredths, not {self.amount}.")
        if not 0 < len(self.idempotency_key) <= MAX_KEY_CHARACTERS:
            raise ValueError(f"A transfer's key has 1 to {MAX_KEY_CHARACTERS} characters.")
        if self.kind is TransferKind.FORGIVEN:
            raise ValueError("Forgiven amounts are posted by the ledger alone.")


@dataclass(frozen=True, slots=True)
class Posting:
    """What a call of `post` did: the keys that were new, and what the horde made up where a debit went too low."""

    posted_keys: frozenset[str]
    forgiven_kudos: Decimal


@dataclass(frozen=True, slots=True)
class Outcome:
    """The row of `post.sql`."""

    unknown_accounts: list[int]
    posted_keys: list[str]
    forgiven_kudos: Decimal


def post(transfers: Sequence[NewTransfer], *, now: datetime) -> Posting:
    """Move kudos: all transfers whose keys are new, and none of the others.

    Accounts come last in the lock order, so call this last in a transaction, and once: a second call could lock a lower
    account than the first. A debit that takes an account below its minimum is made up to it; credits of the same call
    count before that is judged.

    Raises:
        UnknownAccounts: a transfer names an account that does not exist; nothing was written.
    """
    assert connection.in_atomic_block, "kudos move in the transaction of what causes them"
    if not transfers:
        return Posting(posted_keys=frozenset(), forgiven_kudos=Decimal(0))
    outcome = sql.find_one(
        sql.load(__file__, "post.sql"),
        {
            "keys": [transfer.idempotency_key for transfer in transfers],
            "debit_accounts": [int(transfer.debit_account) for transfer in transfers],
            "credit_accounts": [int(transfer.credit_account) for transfer in transfers],
            "amounts": [transfer.amount for transfer in transfers],
            "kinds": [transfer.kind.value for transfer in transfers],
            "causes": [transfer.cause for transfer in transfers],
            "forgiven": TransferKind.FORGIVEN.value,
            "mint": HouseAccount.MINT.value,
            "now": now,
        },
        Outcome,
    )
    assert outcome is not None, "post.sql always returns one row"
    if outcome.unknown_accounts:
        raise UnknownAccounts(outcome.unknown_accounts)
    return Posting(posted_keys=frozenset(outcome.posted_keys), forgiven_kudos=outcome.forgiven_kudos)
