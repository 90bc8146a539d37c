"""A hold reserves what is free, ends once, and is worth exactly what it was placed for."""

from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django.fixtures import DjangoAssertNumQueries

from billing_app.errors import InsufficientKudos, UnknownAccounts
from billing_app.models import Account, Hold
from billing_app.rules.accounts import ANONYMOUS_USER_ID, HoldResolution, HouseAccount, TransferKind
from billing_app.selectors import holds as found_holds
from billing_app.selectors import ledger as books
from billing_app.selectors.holds import HoldState
from billing_app.services import holds, ledger
from tests.billing.books import CAUSE, NOW, balance_id, entries, held, hold, open_balance, posted, transfer
from tests.tries import counted

pytestmark = pytest.mark.django_db


def test_reserves_kudos_in_one_statement(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    account = open_balance("100")

    with django_assert_num_queries(1):
        placed = holds.place(
            account_id=account, kudos=Decimal("30.50"), key="upfront:a", cause=CAUSE, now=NOW, expires_at=None
        )

    assert placed == HoldState(
        key="upfront:a",
        account_id=account,
        kudos=Decimal("30.50"),
        expires_at=None,
        resolution=None,
        settled_kudos=Decimal(0),
    )
    assert placed.is_open
    assert found_holds.find(key="upfront:a") == placed
    assert (posted(account), held(account)) == (Decimal(100), Decimal("30.50"))
    assert entries() == []
    assert books.reconcile().is_sound


@pytest.mark.parametrize(
    ("start", "kudos", "free"),
    [("100", "75", None), ("100", "75.01", "75.00"), ("25", "0.01", "0.00"), ("0", "1", "-25.00")],
)
def test_reserves_only_what_is_free_above_the_minimum(start: str, kudos: str, free: str | None) -> None:
    account = open_balance(start)

    if free is None:
        assert hold("upfront:a", account, kudos).is_open
        return
    with pytest.raises(InsufficientKudos, match=f"{kudos} kudos are needed and {free} are free.") as refusal:
        hold("upfront:a", account, kudos)

    assert (refusal.value.needed_kudos, refusal.value.free_kudos) == (Decimal(kudos), Decimal(free))
    assert held(account) == 0
    assert not Hold.objects.exists()


def test_the_anonymous_user_can_reserve_down_to_the_floor_and_nothing_at_it() -> None:
    account = balance_id(ANONYMOUS_USER_ID)
    hold("upfront:a", account, "50")

    with pytest.raises(InsufficientKudos):
        hold("upfront:b", account, "0.01")
    holds.void(keys=["upfront:a"], now=NOW)
    ledger.post([transfer("tax:a", account, HouseAccount.TAX, "50")], now=NOW)

    with pytest.raises(InsufficientKudos):
        hold("upfront:c", account, "0.01")


def test_what_is_held_cannot_be_held_again() -> None:
    account = open_balance("100")
    hold("upfront:a", account, "50")

    with pytest.raises(InsufficientKudos, match=r"25\.01 kudos are needed and 25\.00 are free"):
        hold("upfront:b", account, "25.01")
    hold("upfront:c", account, "25")

    assert held(account) == Decimal(75)


def test_a_repeated_key_returns_the_first_hold_unchanged() -> None:
    account = open_balance("100")
    first = hold("upfront:a", account, "50")

    again = hold("upfront:a", account, "50")
    # A repeat is known by its key, not by what is free: 60 are not.
    with_another_amount = hold("upfront:a", account, "60")

    assert again == with_another_amount == first
    assert held(account) == Decimal(50)
    assert Hold.objects.count() == 1


def test_a_repeated_key_returns_a_hold_that_was_resolved() -> None:
    account = open_balance("100")
    hold("upfront:a", account, "50")
    holds.void(keys=["upfront:a"], now=NOW)

    again = hold("upfront:a", account, "50")

    assert (again.resolution, again.is_open) == (HoldResolution.VOIDED, False)
    assert held(account) == 0


def test_refuses_a_hold_on_an_unknown_account() -> None:
    with pytest.raises(UnknownAccounts, match=f"There is no account {2**40}"):
        hold("upfront:a", 2**40, "1")


@pytest.mark.parametrize("kudos", ["0", "-1", "0.001", "NaN", "1e15"])
def test_refuses_an_amount_the_column_cannot_hold_as_it_is(kudos: str) -> None:
    with pytest.raises(ValueError, match="positive amount of whole hundredths"):
        hold("upfront:a", open_balance("100"), kudos)


@pytest.mark.parametrize("key", ["", "k" * 101])
def test_refuses_a_key_the_column_cannot_hold(key: str) -> None:
    with pytest.raises(ValueError, match="key has 1 to 100 characters"):
        hold(key, open_balance("100"), "1")


@pytest.mark.parametrize(
    ("charged", "settled"), [("12.34", "12.34"), ("50", "50"), ("50.01", "50"), ("80", "50"), ("0", "0")]
)
def test_settles_up_to_the_amount_and_frees_the_rest(
    charged: str, settled: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    payer, owner = open_balance("200"), open_balance()
    hold("upfront:a", payer, "50")
    transfers = [transfer("reply:a", payer, owner, charged)] if Decimal(charged) else []

    with django_assert_num_queries(1 + bool(transfers)):
        settlement = holds.settle(key="upfront:a", kudos=Decimal(charged), transfers=transfers, now=NOW)

    assert settlement.settled_kudos == Decimal(settled)
    assert settlement.posting.posted_keys == ({"reply:a"} if transfers else set())
    assert (posted(payer), held(payer), posted(owner)) == (200 - Decimal(charged), Decimal(0), Decimal(charged))
    row = Hold.objects.get()
    assert (row.resolution, row.resolved_at, row.settled_kudos) == ("settled", NOW, Decimal(settled))
    assert books.reconcile().is_sound


def test_charges_before_the_last_leave_the_hold_whole() -> None:
    payer, owner = open_balance("200"), open_balance()
    hold("upfront:a", payer, "60")
    ledger.post([transfer("reply:a", payer, owner, "20")], now=NOW)
    between = held(payer)

    settlement = holds.settle(
        key="upfront:a", kudos=Decimal(41), transfers=[transfer("reply:b", payer, owner, "21")], now=NOW
    )

    assert between == Decimal(60)
    assert settlement.settled_kudos == Decimal(41)
    assert (posted(payer), held(payer)) == (Decimal(159), Decimal(0))


def test_settles_once_and_posts_the_charges_all_the_same() -> None:
    payer, owner = open_balance("200"), open_balance()
    hold("upfront:a", payer, "50")
    charge = [transfer("reply:a", payer, owner, "10")]
    holds.settle(key="upfront:a", kudos=Decimal(10), transfers=charge, now=NOW)

    again = holds.settle(key="upfront:a", kudos=Decimal(10), transfers=charge, now=NOW)
    other = holds.settle(key="upfront:a", kudos=Decimal(5), transfers=[transfer("reply:b", payer, owner, "5")], now=NOW)

    assert (again.settled_kudos, again.posting.posted_keys) == (None, frozenset())
    assert (other.settled_kudos, other.posting.posted_keys) == (None, frozenset({"reply:b"}))
    assert Hold.objects.get().settled_kudos == Decimal(10)
    assert (posted(payer), held(payer)) == (Decimal(185), Decimal(0))


def test_charges_a_request_that_never_had_a_hold() -> None:
    payer, owner = open_balance("200"), open_balance()

    settlement = holds.settle(
        key="upfront:none", kudos=Decimal(5), transfers=[transfer("reply:b", payer, owner, "5")], now=NOW
    )

    assert (settlement.settled_kudos, settlement.posting.posted_keys) == (None, frozenset({"reply:b"}))


def test_a_settlement_that_names_an_unknown_account_is_rolled_back() -> None:
    payer = open_balance("200")
    hold("upfront:a", payer, "50")

    with pytest.raises(UnknownAccounts), transaction.atomic():
        holds.settle(key="upfront:a", kudos=Decimal(5), transfers=[transfer("reply:b", payer, 2**40, "5")], now=NOW)

    assert held(payer) == Decimal(50)
    assert Hold.objects.get().resolution is None


@pytest.mark.parametrize("kudos", ["-1", "0.001", "NaN"])
def test_refuses_to_settle_what_is_no_amount(kudos: str) -> None:
    with pytest.raises(ValueError, match="settled by whole hundredths"):
        holds.settle(key="upfront:a", kudos=Decimal(kudos), transfers=[], now=NOW)


def test_voids_many_holds_of_many_accounts_in_one_statement(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    first, second = open_balance("100"), open_balance("100")
    for key, account in (("a", first), ("b", first), ("c", second), ("d", second)):
        hold(f"upfront:{key}", account, "10")

    with django_assert_num_queries(1):
        voided = holds.void(keys=["upfront:c", "upfront:b", "upfront:a", "upfront:none"], now=NOW)

    assert voided == {"upfront:a", "upfront:b", "upfront:c"}
    assert (held(first), held(second)) == (Decimal(0), Decimal(10))
    rows = Hold.objects.filter(resolution="voided").values_list("resolved_at", "settled_kudos")
    assert list(rows) == [(NOW, Decimal(0))] * 3
    assert books.reconcile().is_sound


def test_voids_nothing_twice(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    account = open_balance("100")
    hold("upfront:a", account, "10")
    hold("upfront:b", account, "20")
    holds.settle(key="upfront:a", kudos=Decimal(3), transfers=[], now=NOW)

    voided = [holds.void(keys=["upfront:a", "upfront:b"], now=NOW) for _ in range(2)]
    with django_assert_num_queries(0):
        nothing = holds.void(keys=[], now=NOW)

    assert voided == [{"upfront:b"}, set()]
    assert nothing == frozenset()
    assert held(account) == 0
    assert found_holds.find(key="upfront:a").resolution is HoldResolution.SETTLED  # type: ignore[union-attr]


def test_a_hold_of_a_request_that_is_refused_later_goes_with_it() -> None:
    account = open_balance("100")

    def place_and_refuse() -> None:
        with transaction.atomic():
            hold("upfront:a", account, "50")
            raise InterruptedError

    with pytest.raises(InterruptedError):
        place_and_refuse()

    assert held(account) == 0
    assert not Hold.objects.exists()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("UPDATE holds SET kudos = 1", "open hold changes by its resolution alone"),
        ("UPDATE holds SET kudos = kudos", "open hold changes by its resolution alone"),
        ("UPDATE holds SET expires_at = now()", "open hold changes by its resolution alone"),
        ("UPDATE holds SET key = 'x', resolution = 'voided', resolved_at = now()", "changes by its resolution alone"),
        ("UPDATE holds SET kudos = 1, resolution = 'voided', resolved_at = now()", "changes by its resolution alone"),
        ("DELETE FROM holds", "holds are never deleted"),
    ],
)
def test_an_open_hold_changes_by_its_resolution_alone(change: str, complaint: str) -> None:
    hold("upfront:a", open_balance("100"), "10")

    with pytest.raises(IntegrityError, match=complaint), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change)

    assert found_holds.find(key="upfront:a").is_open  # type: ignore[union-attr]


@pytest.mark.parametrize("resolution", HoldResolution)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE holds SET resolution = resolution",
        "UPDATE holds SET resolution = 'lapsed', settled_kudos = 0",
        "UPDATE holds SET resolution = NULL, resolved_at = NULL, settled_kudos = 0",
        "UPDATE holds SET settled_kudos = 1",
        "DELETE FROM holds",
    ],
)
def test_a_resolved_hold_is_never_changed(resolution: HoldResolution, change: str) -> None:
    hold("upfront:a", open_balance("100"), "10")
    Hold.objects.update(resolution=resolution.value, resolved_at=NOW)

    with (
        pytest.raises(IntegrityError, match=r"a hold resolves once|never deleted"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)

    assert found_holds.find(key="upfront:a").resolution is resolution  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("columns", "constraint"),
    [
        ({"kudos": 0}, "holds_kudos_positive"),
        ({"kudos": -1}, "holds_kudos_positive"),
        ({"resolution": "spent", "resolved_at": NOW}, "holds_resolution_known"),
        ({"resolution": "voided"}, "holds_resolved_with_moment"),
        ({"resolved_at": NOW}, "holds_resolved_with_moment"),
        ({"settled_kudos": 1}, "holds_settled_within_amount"),
        ({"settled_kudos": 1, "resolution": "voided", "resolved_at": NOW}, "holds_settled_within_amount"),
        ({"settled_kudos": 1, "resolution": "lapsed", "resolved_at": NOW}, "holds_settled_within_amount"),
        ({"settled_kudos": 11, "resolution": "settled", "resolved_at": NOW}, "holds_settled_within_amount"),
        ({"settled_kudos": -1, "resolution": "settled", "resolved_at": NOW}, "holds_settled_within_amount"),
        ({"key": "upfront:a"}, "holds_key_unique"),
    ],
)
def test_the_database_refuses_a_row_that_is_no_hold(columns: dict[str, object], constraint: str) -> None:
    account = open_balance("100")
    hold("upfront:a", account, "10")
    row = {"account_id": account, "key": "upfront:b", "kudos": 10, "cause": UUID(int=1), "placed_at": NOW}

    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Hold.objects.create(**{**row, **columns})


def test_reconciling_names_an_account_that_holds_another_sum_than_its_open_holds() -> None:
    account, honest = open_balance("100"), open_balance("100")
    hold("upfront:a", account, "10")
    hold("upfront:b", account, "20")
    hold("upfront:c", honest, "5")
    hold("upfront:d", honest, "6")
    holds.void(keys=["upfront:d"], now=NOW)
    Account.objects.filter(id=account).update(held_kudos=Decimal("30.01"))

    found = books.reconcile()

    assert (found.total, found.open_holds) == (Decimal(0), 3)
    assert found.drifted == (
        books.Drift(account, Decimal(100), Decimal(100), held_kudos=Decimal("30.01"), reserved_kudos=Decimal(30)),
    )
    assert not found.is_sound


def test_a_reward_may_be_split_between_balance_and_escrow() -> None:
    payer, owner = open_balance("200"), open_balance()
    escrow = Account.objects.get(user_id=Account.objects.get(id=owner).user_id, kind="escrow").id
    hold("upfront:a", payer, "50")

    holds.settle(
        key="upfront:a",
        kudos=Decimal("12.01"),
        transfers=[
            transfer("reply:a", payer, owner, "5.50"),
            transfer("escrow:a", payer, escrow, "5.51"),
            transfer("burn:a", payer, HouseAccount.BURN, "1", kind=TransferKind.BURN),
        ],
        now=NOW,
    )

    assert (posted(payer), posted(owner), posted(escrow)) == (Decimal("187.99"), Decimal("5.50"), Decimal("5.51"))
    assert Hold.objects.get().settled_kudos == Decimal("12.01")
    assert books.reconcile().is_sound


def test_an_expiry_is_kept_as_it_was_given() -> None:
    expires_at = NOW + timedelta(minutes=20)

    placed = holds.place(
        account_id=open_balance("100"), kudos=Decimal(1), key="upfront:a", cause=CAUSE, now=NOW, expires_at=expires_at
    )

    assert placed.expires_at == expires_at
    assert found_holds.find(key="upfront:a") == placed


def test_nobody_has_a_hold_of_an_unknown_key() -> None:
    assert found_holds.find(key="upfront:none") is None


def test_frees_what_is_past_its_expiry_a_batch_at_a_time() -> None:
    first, second = open_balance("100"), open_balance("100")
    for key, account, minutes in (("c", first, 3), ("a", first, 1), ("b", second, 2), ("later", second, 4)):
        hold(f"upfront:{key}", account, "10", expires_at=NOW + timedelta(minutes=minutes))
    hold("upfront:never", second, "10")
    hold("upfront:done", first, "10", expires_at=NOW)
    holds.settle(key="upfront:done", kudos=Decimal(1), transfers=[], now=NOW)
    now = NOW + timedelta(minutes=3)
    counted_before = counted("horde_holds_lapsed_total")

    before = holds.lapse_batch(now=NOW + timedelta(seconds=59))
    first_batch = holds.lapse_batch(now=now, limit=2)
    after_first = set(Hold.objects.filter(resolution="lapsed").values_list("key", flat=True))
    rest = [holds.lapse_batch(now=now, limit=2) for _ in range(2)]

    assert (before, first_batch, rest) == (0, 2, [1, 0])
    assert counted("horde_holds_lapsed_total") == counted_before + 3
    assert after_first == {"upfront:a", "upfront:b"}
    assert Hold.objects.get(key="upfront:c").resolved_at == now
    assert (held(first), held(second)) == (Decimal(0), Decimal(20))
    assert books.reconcile().is_sound


def test_a_hold_past_its_expiry_can_be_settled_until_the_sweep_has_come() -> None:
    account = open_balance("100")
    hold("upfront:a", account, "10", expires_at=NOW)

    settlement = holds.settle(key="upfront:a", kudos=Decimal(4), transfers=[], now=NOW + timedelta(minutes=1))

    assert settlement.settled_kudos == Decimal(4)
    assert holds.lapse_batch(now=NOW + timedelta(minutes=2)) == 0
    assert held(account) == 0
