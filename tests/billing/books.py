"""Short words for the ledger tests: open a purse, look into it, name a transfer, place a hold."""

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from billing_app.models import Account, Transfer
from billing_app.rules.accounts import AccountKind, TransferKind
from billing_app.selectors.holds import HoldState
from billing_app.services import accounts, holds
from billing_app.services.ledger import NewTransfer

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CAUSE = UUID("11111111-2222-4333-8444-555555555555")


def open_balance(kudos: str = "0") -> int:
    """Make a user and return the id of their balance account."""
    owner = accounts.create_user(alias="someone", kudos=Decimal(kudos), now=NOW)
    return balance_id(owner.id)


def balance_id(user_id: int) -> int:
    return Account.objects.get(user_id=user_id, kind=AccountKind.BALANCE).id


def posted(account_id: int) -> Decimal:
    return Account.objects.get(id=account_id).posted_kudos


def held(account_id: int) -> Decimal:
    return Account.objects.get(id=account_id).held_kudos


def hold(key: str, account_id: int, kudos: str, *, expires_at: datetime | None = None) -> HoldState:
    return holds.place(
        account_id=account_id, kudos=Decimal(kudos), key=key, cause=CAUSE, now=NOW, expires_at=expires_at
    )


def transfer(
    key: str,
    debit: int,
    credit: int,
    amount: str,
    *,
    kind: TransferKind = TransferKind.REPLY,
    cause: UUID | None = None,
) -> NewTransfer:
    return NewTransfer(
        idempotency_key=key, debit_account=debit, credit_account=credit, amount=Decimal(amount), kind=kind, cause=cause
    )


def entries(**conditions: object) -> list[tuple[str, int, int, Decimal, str]]:
    """Return ledger rows as (key, debit, credit, amount, kind), in key order; the start kudos left out."""
    return list(
        Transfer.objects.filter(**conditions)
        .exclude(kind=TransferKind.START)
        .order_by("idempotency_key")
        .values_list("idempotency_key", "debit_account", "credit_account", "amount", "kind")
    )
