"""What an owner earned before they were trusted comes to their balance whole, and once."""

from decimal import Decimal

import pytest

from billing_app.errors import UnknownUser
from billing_app.models import Account
from billing_app.rules.accounts import AccountKind, HouseAccount
from billing_app.selectors import ledger as books
from billing_app.services import escrow, ledger
from tests.billing.books import NOW, entries, open_balance, posted, transfer

pytestmark = pytest.mark.django_db


def open_owner(earned: str) -> tuple[int, int, int]:
    """Make an owner with 30 kudos and something in escrow; return the user's and both accounts' ids."""
    balance = Account.objects.get(id=open_balance("30"))
    escrow_id = Account.objects.get(user_id=balance.user_id, kind=AccountKind.ESCROW).id
    if Decimal(earned):
        ledger.post([transfer("reply:a", HouseAccount.MINT, escrow_id, earned)], now=NOW)
    return balance.user_id, balance.id, escrow_id


def test_pays_all_of_it_out_in_one_transfer() -> None:
    user_id, balance, escrow_id = open_owner("12.34")

    moved = escrow.pay_out(user_id=user_id, key=f"promotion:{user_id}", now=NOW)

    assert moved == Decimal("12.34")
    assert (posted(escrow_id), posted(balance)) == (Decimal(0), Decimal("42.34"))
    assert entries(kind="promotion") == [
        (f"promotion:{user_id}", escrow_id, balance, Decimal("12.34"), "promotion"),
    ]
    assert books.reconcile().is_sound


def test_a_repeat_moves_nothing_even_when_more_was_earned() -> None:
    user_id, balance, escrow_id = open_owner("12.34")
    escrow.pay_out(user_id=user_id, key="promotion:a", now=NOW)
    ledger.post([transfer("reply:b", HouseAccount.MINT, escrow_id, "5")], now=NOW)

    repeated = escrow.pay_out(user_id=user_id, key="promotion:a", now=NOW)
    kept = posted(escrow_id)
    once_more = escrow.pay_out(user_id=user_id, key="promotion:b", now=NOW)

    assert (repeated, kept, once_more) == (Decimal(0), Decimal(5), Decimal(5))
    assert posted(balance) == Decimal("47.34")


def test_an_empty_escrow_leaves_no_transfer() -> None:
    user_id, balance, _ = open_owner("0")

    assert escrow.pay_out(user_id=user_id, key="promotion:a", now=NOW) == 0

    assert entries() == []
    assert posted(balance) == Decimal(30)


def test_nobody_has_no_escrow() -> None:
    with pytest.raises(UnknownUser, match="There is no user with the id 99999"):
        escrow.pay_out(user_id=99999, key="promotion:a", now=NOW)
