"""The ledger posts each transfer once, keeps its sums, lifts what a debit took too low, and is never changed."""

from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from pytest_django.fixtures import DjangoAssertNumQueries

from billing_app.errors import UnknownAccounts
from billing_app.models import Account, Transfer
from billing_app.rules.accounts import ANONYMOUS_USER_ID, AccountKind, HouseAccount, TransferKind
from billing_app.selectors import ledger as books
from billing_app.services import ledger
from tests.billing.books import CAUSE, NOW, balance_id, entries, open_balance, posted, transfer

pytestmark = pytest.mark.django_db


def test_moves_kudos_from_debit_to_credit_in_one_statement(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    payer, owner = open_balance("100"), open_balance("40")

    with django_assert_num_queries(1):
        posting = ledger.post(
            [
                transfer("reply:a", payer, owner, "12.34", cause=CAUSE),
                transfer("burn:a", payer, HouseAccount.BURN, "1", kind=TransferKind.BURN, cause=CAUSE),
            ],
            now=NOW,
        )

    assert posting == ledger.Posting(posted_keys=frozenset({"reply:a", "burn:a"}), forgiven_kudos=Decimal(0))
    assert (posted(payer), posted(owner)) == (Decimal("86.66"), Decimal("52.34"))
    assert entries() == [
        ("burn:a", payer, -2, Decimal("1.00"), "burn"),
        ("reply:a", payer, owner, Decimal("12.34"), "reply"),
    ]
    row = Transfer.objects.get(idempotency_key="reply:a")
    assert (row.cause, row.created_at) == (CAUSE, NOW)
    assert books.reconcile().is_sound


def test_posts_nothing_when_there_is_nothing_to_post(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(0):
        posting = ledger.post([], now=NOW)

    assert posting == ledger.Posting(posted_keys=frozenset(), forgiven_kudos=Decimal(0))


def test_a_repeated_key_moves_nothing() -> None:
    payer, owner = open_balance("100"), open_balance()
    ledger.post([transfer("reply:a", payer, owner, "10")], now=NOW)

    posting = ledger.post([transfer("reply:a", payer, owner, "10")], now=NOW)

    assert posting.posted_keys == frozenset()
    assert (posted(payer), posted(owner)) == (Decimal(90), Decimal(10))
    assert len(entries()) == 1


def test_a_key_given_twice_in_one_call_moves_once() -> None:
    payer, owner = open_balance("100"), open_balance()

    posting = ledger.post([transfer("reply:a", payer, owner, "10"), transfer("reply:a", payer, owner, "10")], now=NOW)

    assert posting.posted_keys == frozenset({"reply:a"})
    assert (posted(payer), posted(owner)) == (Decimal(90), Decimal(10))


def test_posts_the_new_keys_beside_repeated_ones() -> None:
    payer, owner = open_balance("100"), open_balance()
    ledger.post([transfer("reply:a", payer, owner, "10")], now=NOW)

    posting = ledger.post([transfer("reply:a", payer, owner, "10"), transfer("reply:b", payer, owner, "5")], now=NOW)

    assert posting.posted_keys == frozenset({"reply:b"})
    assert (posted(payer), posted(owner)) == (Decimal(85), Decimal(15))


@pytest.mark.parametrize(
    ("start", "debit", "left", "forgiven"),
    [
        ("100", "30", "70", None),
        ("100", "75", "25", None),
        ("100", "75.01", "25", "0.01"),
        ("100", "500", "25", "425"),
        ("0", "1", "25", "26"),
    ],
)
def test_a_debit_never_leaves_less_than_the_minimum(start: str, debit: str, left: str, forgiven: str | None) -> None:
    payer = open_balance(start)

    posting = ledger.post(
        [transfer("tax:a", payer, HouseAccount.TAX, debit, kind=TransferKind.TAX, cause=CAUSE)], now=NOW
    )

    assert posted(payer) == Decimal(left)
    assert posting.forgiven_kudos == Decimal(forgiven or 0)
    assert entries(kind=TransferKind.FORGIVEN) == (
        [("forgiven:tax:a", HouseAccount.MINT, payer, Decimal(forgiven), "forgiven")] if forgiven else []
    )
    assert not Transfer.objects.filter(kind=TransferKind.FORGIVEN).exclude(cause=CAUSE).exists()
    assert books.reconcile().is_sound


def test_the_anonymous_user_goes_down_to_minus_fifty() -> None:
    payer = balance_id(ANONYMOUS_USER_ID)

    ledger.post([transfer("tax:a", payer, HouseAccount.TAX, "49.99")], now=NOW)
    before = posted(payer)
    posting = ledger.post([transfer("tax:b", payer, HouseAccount.TAX, "3")], now=NOW)

    assert before == Decimal("-49.99")
    assert posted(payer) == Decimal(-50)
    assert posting.forgiven_kudos == Decimal("2.99")


def test_a_credit_alone_does_not_lift_an_account_to_its_minimum() -> None:
    owner = open_balance()

    posting = ledger.post([transfer("reply:a", HouseAccount.MINT, owner, "3")], now=NOW)

    assert posted(owner) == Decimal(3)
    assert posting.forgiven_kudos == 0


def test_credits_of_the_same_call_count_before_a_debit_is_forgiven() -> None:
    account = open_balance("26")

    posting = ledger.post(
        [
            transfer("reply:a", account, account, "10"),
            transfer("burn:a", account, HouseAccount.BURN, "1", kind=TransferKind.BURN),
        ],
        now=NOW,
    )

    assert posted(account) == Decimal(25)
    assert posting.forgiven_kudos == 0
    assert books.reconcile().is_sound


def test_a_user_may_pay_themself() -> None:
    account = open_balance("100")

    posting = ledger.post([transfer("reply:a", account, account, "10")], now=NOW)

    assert posting.posted_keys == frozenset({"reply:a"})
    assert posted(account) == Decimal(100)
    assert books.reconcile().is_sound


@pytest.mark.parametrize("missing_side", ["debit", "credit"])
def test_refuses_a_transfer_that_names_an_unknown_account(missing_side: str) -> None:
    known, missing = open_balance("100"), 2**40
    debit, credit = (missing, known) if missing_side == "debit" else (known, missing)

    with pytest.raises(UnknownAccounts, match=f"There is no account {missing}; nothing was posted.") as refusal:
        ledger.post(
            [transfer("reply:a", debit, credit, "10"), transfer("tax:a", known, HouseAccount.TAX, "1")], now=NOW
        )

    assert refusal.value.account_ids == (missing,)
    assert entries() == []
    assert posted(known) == Decimal(100)


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "NaN", "Infinity", "1e15", "1e40"])
def test_refuses_an_amount_the_column_cannot_hold_as_it_is(amount: str) -> None:
    with pytest.raises(ValueError, match="positive amount of whole hundredths"):
        transfer("reply:a", 1, 2, amount)


@pytest.mark.parametrize("key", ["", "k" * 101])
def test_refuses_a_key_without_room_for_the_forgiven_one(key: str) -> None:
    with pytest.raises(ValueError, match="key has 1 to 100 characters"):
        transfer(key, 1, 2, "1")


def test_the_longest_key_still_leaves_room_for_the_forgiven_one() -> None:
    payer = open_balance()

    ledger.post([transfer("k" * 100, payer, HouseAccount.TAX, "1")], now=NOW)

    assert entries(kind=TransferKind.FORGIVEN)[0][0] == "forgiven:" + "k" * 100


def test_nobody_else_posts_forgiven_amounts() -> None:
    with pytest.raises(ValueError, match="by the ledger alone"):
        transfer("forgiven:a", HouseAccount.MINT, 1, "1", kind=TransferKind.FORGIVEN)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transfers SET amount = 1000000",
        "UPDATE transfers SET amount = amount",
        "DELETE FROM transfers",
        "DELETE FROM transfers WHERE id = -1",
    ],
)
def test_a_transfer_is_neither_changed_nor_deleted(statement: str) -> None:
    open_balance("100")

    with (
        pytest.raises(IntegrityError, match="transfers are never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert Transfer.objects.get().amount == Decimal(100)


@pytest.mark.parametrize(
    ("column", "value"),
    [("amount", 0), ("amount", -1), ("kind", "gift"), ("debit_account", 0), ("credit_account", -4)],
)
def test_the_database_refuses_a_row_that_is_no_transfer(column: str, value: object) -> None:
    row = {
        "idempotency_key": "x", "debit_account": -3, "credit_account": -2, "amount": 1, "kind": "burn",
        "created_at": NOW,
    }  # fmt: skip

    with pytest.raises(IntegrityError, match="check constraint"), transaction.atomic():
        Transfer.objects.create(**{**row, column: value})


def test_an_account_never_holds_less_than_nothing() -> None:
    account = open_balance("100")

    with pytest.raises(DatabaseError, match="accounts_held_not_negative"), transaction.atomic():
        Account.objects.filter(id=account).update(held_kudos=-1)


def test_reconciling_names_an_account_whose_sum_was_tampered_with() -> None:
    account, honest = open_balance("100"), open_balance("7")
    ledger.post([transfer("reply:a", account, honest, "10")], now=NOW)
    Account.objects.filter(id=account).update(posted_kudos=Decimal("90.01"))

    found = books.reconcile()

    assert found == books.Reconciliation(
        total=Decimal("0.01"),
        accounts=6,
        transfers=3,
        open_holds=0,
        drifted=(books.Drift(account, Decimal("90.01"), Decimal("90.00")),),
    )
    assert not found.is_sound


def test_reconciling_finds_drift_that_cancels_out() -> None:
    first, second = open_balance("100"), open_balance("100")
    Account.objects.filter(id=first).update(posted_kudos=110)
    Account.objects.filter(id=second).update(posted_kudos=90)

    found = books.reconcile()

    assert found.total == 0
    assert [drift.account_id for drift in found.drifted] == [first, second]
    assert not found.is_sound


def test_reconciling_finds_an_account_that_has_transfers_and_no_row() -> None:
    Transfer.objects.create(
        idempotency_key="x", debit_account=-3, credit_account=2**40, amount=5, kind="start", created_at=NOW
    )

    found = books.reconcile()

    assert found.drifted == (books.Drift(2**40, Decimal(0), Decimal(5)),)
    assert found.total == -5


def test_escrow_is_an_account_like_any_other() -> None:
    owner = open_balance("30")
    escrow = Account.objects.get(user_id=Account.objects.get(id=owner).user_id, kind=AccountKind.ESCROW).id

    ledger.post([transfer("reply:a", HouseAccount.MINT, escrow, "10")], now=NOW)
    ledger.post([transfer("move:a", escrow, owner, "10")], now=NOW)

    assert (posted(escrow), posted(owner)) == (Decimal(0), Decimal(40))
    assert books.reconcile().is_sound
