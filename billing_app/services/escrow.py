"""Pay out what an owner earned before they were trusted."""

from datetime import datetime
from decimal import Decimal

from django.db import connection

from billing_app.errors import UnknownUser
from billing_app.rules.accounts import AccountKind, TransferKind
from billing_app.selectors import locked
from billing_app.services import ledger
from billing_app.services.ledger import NewTransfer

NOTHING = Decimal(0)


def pay_out(*, user_id: int, key: str, now: datetime) -> Decimal:
    """Move all of a user's escrow to their balance, and return how much this call moved.

    A part: it runs in the transaction that makes the user trusted, and locks accounts, the last in the lock order.
    Once something was moved under the key, a repeat moves nothing, whatever has come to the escrow since.

    Raises:
        UnknownUser: nobody with accounts has this id.
    """
    assert connection.in_atomic_block, "an escrow is paid out in the transaction of the promotion"
    accounts = locked.list_accounts(user_id=user_id)
    if not accounts:
        raise UnknownUser(user_id)
    escrow, balance = accounts[AccountKind.ESCROW], accounts[AccountKind.BALANCE]
    if escrow.posted_kudos <= 0:
        return NOTHING
    posting = ledger.post(
        [
            NewTransfer(
                idempotency_key=key,
                debit_account=escrow.id,
                credit_account=balance.id,
                amount=escrow.posted_kudos,
                kind=TransferKind.PROMOTION,
            )
        ],
        now=now,
    )
    return escrow.posted_kudos if posting.posted_keys else NOTHING
