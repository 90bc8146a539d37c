"""Whoever places, settles, voids or lapses at the same moment: nothing is held twice, and each hold ends once."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from functools import partial
from uuid import uuid4

import pytest
from django.db import connection, transaction

from billing_app.errors import InsufficientKudos
from billing_app.models import Account, Hold, Transfer
from billing_app.rules.accounts import AccountKind, HouseAccount, TransferKind
from billing_app.selectors import ledger as books
from billing_app.selectors.holds import HoldState
from billing_app.services import escrow, holds, ledger
from billing_app.services.holds import Settlement
from billing_app.services.ledger import NewTransfer
from hordechat.infra import advisory_locks
from hordechat.infra.transactions import retry_on_conflict
from tests.billing.books import CAUSE, NOW, held, hold, open_balance, posted, transfer
from tests.billing.crowds import CONNECTIONS, post_alone, run_at_once

pytestmark = pytest.mark.usefixtures("committed")

LATER = NOW + timedelta(minutes=20)


def place_alone(key: str, account: int, kudos: str, *, expires_in_minutes: int | None = None) -> HoldState | None:
    """Place a hold in a transaction of its own; None when too little is free."""
    expires_at = None if expires_in_minutes is None else NOW + timedelta(minutes=expires_in_minutes)
    try:
        with transaction.atomic(durable=True):
            return hold(key, account, kudos, expires_at=expires_at)
    except InsufficientKudos:
        return None


def settle_alone(key: str, kudos: str, *transfers: NewTransfer) -> Settlement:
    with transaction.atomic(durable=True):
        return holds.settle(key=key, kudos=Decimal(kudos), transfers=transfers, now=NOW)


def void_alone(*keys: str) -> frozenset[str]:
    with transaction.atomic(durable=True):
        return holds.void(keys=keys, now=NOW)


def interrupt() -> None:
    """Stand for whatever refuses a request after its hold was placed."""
    raise InterruptedError


def wait_until_somebody_waits(statement: str) -> None:
    """Return when a statement that begins with this comment waits for a lock."""
    for _ in range(1000):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND wait_event_type = 'Lock' AND starts_with(query, %s)",
                [f"-- {statement}:"],
            )
            if cursor.fetchone() != (0,):
                return
        time.sleep(0.01)
    raise AssertionError(f"{statement} never waited")


def let_wait(first: Callable[[], object], second: Callable[[], object], *, statement: str) -> object:
    """Run `first`, keep its transaction open until `second` waits for it, and return what `second` returned."""
    first_is_done = threading.Event()
    somebody_waits = threading.Event()

    def linger() -> object:
        with transaction.atomic(durable=True):
            first()
            first_is_done.set()
            assert somebody_waits.wait(timeout=20)
        return None

    def follow() -> object:
        assert first_is_done.wait(timeout=20)
        return second()

    def watch() -> object:
        try:
            wait_until_somebody_waits(statement)
        finally:
            somebody_waits.set()
        return None

    return run_at_once([linger, follow, watch])[1]


def test_of_fifty_placements_against_a_balance_for_three_three_succeed() -> None:
    account = open_balance("100")

    placed = run_at_once([partial(place_alone, f"upfront:{number}", account, "25") for number in range(50)])

    assert len([state for state in placed if state is not None]) == 3
    assert held(account) == Decimal(75)
    assert Hold.objects.count() == 3
    assert books.reconcile().is_sound


def test_of_twenty_submits_a_user_can_pay_one_of_one_is_admitted() -> None:
    account = open_balance("226.05")

    def submit(request_id: str) -> bool:
        try:
            with transaction.atomic(durable=True):
                hold(f"upfront:{request_id}", account, "195.05")
                ledger.post([transfer(f"tax:{request_id}", account, HouseAccount.TAX, "1")], now=NOW)
        except InsufficientKudos:
            return False
        return True

    admitted = run_at_once([partial(submit, str(number)) for number in range(20)])

    assert sum(admitted) == 1
    assert (posted(account), held(account)) == (Decimal("225.05"), Decimal("195.05"))
    assert Transfer.objects.filter(idempotency_key__startswith="tax:").count() == 1
    assert books.reconcile().is_sound


def test_a_key_placed_by_all_at_once_is_held_once_and_everyone_gets_the_first() -> None:
    account = open_balance("100")

    placed = run_at_once([partial(place_alone, "upfront:a", account, "60")] * CONNECTIONS)

    assert set(placed) == {
        HoldState(
            key="upfront:a",
            account_id=account,
            kudos=Decimal(60),
            expires_at=None,
            resolution=None,
            settled_kudos=Decimal(0),
        )
    }
    assert held(account) == Decimal(60)


def test_a_hold_ends_once_whoever_ends_it() -> None:
    payer, owner = open_balance("1000"), open_balance()
    for number in range(30):
        key = f"upfront:{number}"
        hold_alone = place_alone(key, payer, "10", expires_in_minutes=20)
        assert hold_alone is not None

        def settle(number: int, tries: int) -> str | None:
            settlement = settle_alone(f"upfront:{number}", "4", transfer(f"reply:{number}:{tries}", payer, owner, "1"))
            return None if settlement.settled_kudos is None else "settled"

        def void(key: str) -> str | None:
            return "voided" if void_alone(key) else None

        def lapse() -> str | None:
            return "lapsed" if holds.lapse_batch(now=LATER) else None

        rivals: list[Callable[[], str | None]] = [
            partial(settle, number, 0),
            partial(settle, number, 1),
            *[partial(void, key)] * 2,
            lapse,
            lapse,
        ]
        ends = run_at_once(rivals)

        won = [end for end in ends if end is not None]
        assert won == [Hold.objects.get(key=key).resolution]
        assert held(payer) == 0
    assert (posted(payer), posted(owner)) == (Decimal(940), Decimal(60))
    assert books.reconcile().is_sound


def test_a_placement_that_waited_reads_the_balance_it_waited_for() -> None:
    account = open_balance("100")

    second = let_wait(
        lambda: hold("upfront:a", account, "50"),
        lambda: place_alone("upfront:b", account, "50"),
        statement="place_hold",
    )

    assert second is None
    assert held(account) == Decimal(50)


def test_a_repeat_that_waited_for_the_first_returns_it_although_too_little_is_free() -> None:
    account = open_balance("100")

    second = let_wait(
        lambda: hold("upfront:a", account, "50"),
        lambda: place_alone("upfront:a", account, "50"),
        statement="place_hold",
    )

    assert isinstance(second, HoldState)
    assert second.kudos == Decimal(50)
    assert held(account) == Decimal(50)


def test_a_settlement_that_waited_for_a_void_ends_nothing_and_charges() -> None:
    payer, owner = open_balance("100"), open_balance()
    place_alone("upfront:a", payer, "50")

    second = let_wait(
        lambda: holds.void(keys=["upfront:a"], now=NOW),
        lambda: settle_alone("upfront:a", "10", transfer("reply:a", payer, owner, "10")),
        statement="resolve_holds",
    )

    assert isinstance(second, Settlement)
    assert (second.settled_kudos, second.posting.posted_keys) == (None, frozenset({"reply:a"}))
    assert (posted(payer), held(payer)) == (Decimal(90), Decimal(0))
    assert Hold.objects.get().resolution == "voided"


def test_a_second_sweep_passes_while_the_first_one_works() -> None:
    account = open_balance("100")
    place_alone("upfront:a", account, "50", expires_in_minutes=1)
    is_locked = threading.Event()
    has_passed = threading.Event()

    def hold_the_lock() -> int:
        with transaction.atomic(durable=True):
            assert advisory_locks.try_lock("lapse holds")
            is_locked.set()
            assert has_passed.wait(timeout=20)
        return -1

    def sweep() -> int:
        assert is_locked.wait(timeout=20)
        try:
            return holds.lapse_batch(now=LATER)
        finally:
            has_passed.set()

    assert run_at_once([hold_the_lock, sweep]) == [-1, 0]
    assert holds.lapse_batch(now=LATER) == 1


def test_users_who_settle_and_are_paid_at_once_neither_deadlock_nor_lose_a_hundredth() -> None:
    crowd = [open_balance("100000") for _ in range(5)]
    dice = random.Random(7)
    plans = []
    expected = dict.fromkeys(crowd, Decimal(100000))
    for number in range(CONNECTIONS):
        plan = []
        for step in range(20):
            payer, owner = dice.sample(crowd, 2)
            name = f"{number}-{step}"
            amount = Decimal(dice.randint(100, 9999)) / 100
            place_alone(f"upfront:{name}", payer, "50")
            plan.append((name, payer, owner, amount))
            expected[payer] -= amount + 1
            expected[owner] += amount
        plans.append(plan)

    def settle_all(plan: list[tuple[str, int, int, Decimal]]) -> int:
        return sum(
            settle_alone(
                f"upfront:{name}",
                str(amount + 1),
                transfer(f"reply:{name}", payer, owner, str(amount)),
                transfer(f"burn:{name}", payer, HouseAccount.BURN, "1", kind=TransferKind.BURN),
            ).settled_kudos
            == min(amount + 1, 50)
            for name, payer, owner, amount in plan
        )

    # No retry on a deadlock here: the first one fails the test.
    settled = run_at_once([partial(settle_all, plan) for plan in plans])

    assert settled == [20] * CONNECTIONS
    assert {account: posted(account) for account in crowd} == expected
    assert Account.objects.filter(held_kudos__gt=0).count() == 0
    assert books.reconcile().is_sound


def test_any_interleaving_keeps_the_books() -> None:
    """Connections place, post, settle, void, lapse, pay out and repeat; the books are what they say they did."""
    crowd = [open_balance("1000") for _ in range(6)]
    users = {account: Account.objects.get(id=account).user_id for account in crowd}
    escrows = {
        account: Account.objects.get(user_id=user, kind=AccountKind.ESCROW).id for account, user in users.items()
    }
    keys = [f"upfront:{number}" for number in range(150)]
    account_of = {key: crowd[number % len(crowd)] for number, key in enumerate(keys)}
    amount_of = {key: f"{5 + number % 40}.50" for number, key in enumerate(keys)}
    resolved: Counter[tuple[str, str]] = Counter()
    placed: set[str] = set()
    book = threading.Lock()

    def place(dice: random.Random) -> None:
        key = dice.choice(keys)
        minutes = dice.choice([None, 1, 5])
        if place_alone(key, account_of[key], amount_of[key], expires_in_minutes=minutes) is not None:
            with book:
                placed.add(key)

    def move(dice: random.Random) -> list[NewTransfer]:
        payer, owner = dice.sample(crowd, 2)
        name = f"{dice.randint(1, 400)}-{payer}-{owner}"
        return [
            transfer(f"reply:{name}", payer, owner, "3.33"),
            transfer(f"escrow:{name}", payer, escrows[owner], "3.34"),
            transfer(f"burn:{name}", payer, HouseAccount.BURN, "1", kind=TransferKind.BURN),
        ]

    def settle(dice: random.Random) -> None:
        key = dice.choice(keys)
        settlement = settle_alone(key, str(dice.randint(0, 60)), *move(dice))
        with book:
            resolved[key, "settled"] += settlement.settled_kudos is not None

    def void(dice: random.Random) -> None:
        voided = void_alone(*dice.sample(keys, 3))
        with book:
            resolved.update((key, "voided") for key in voided)

    def lapse(dice: random.Random) -> None:
        holds.lapse_batch(now=NOW + timedelta(minutes=dice.choice([1, 5])), limit=3)

    def pay_out(dice: random.Random) -> None:
        with transaction.atomic(durable=True):
            user = users[dice.choice(crowd)]
            escrow.pay_out(user_id=user, key=f"promotion:{user}:{dice.randint(1, 5)}", now=NOW)

    def refuse(dice: random.Random) -> None:
        key = dice.choice(keys)
        with suppress(InterruptedError, InsufficientKudos), transaction.atomic(durable=True):
            hold(f"gone:{uuid4()}", account_of[key], "1")
            interrupt()

    def work(seed: int) -> None:
        dice = random.Random(seed)
        actions = [place, place, place, settle, settle, void, lapse, pay_out, refuse]
        for _ in range(40):
            action = dice.choice(actions)
            if action is settle and dice.random() < 0.3:
                post_alone(move(dice))
            else:
                action(dice)

    run_at_once([partial(work, seed) for seed in range(CONNECTIONS)])

    found = books.reconcile()
    assert (found.total, found.drifted) == (Decimal(0), ())
    rows = {row.key: row for row in Hold.objects.all()}
    assert set(rows) == placed
    ended = {key: row.resolution for key, row in rows.items() if row.resolution is not None}
    assert {key: how for (key, how), count in resolved.items() if count} == {
        key: how for key, how in ended.items() if how != "lapsed"
    }
    assert max(resolved.values()) == 1
    for account in Account.objects.filter(id__in=[*crowd, *escrows.values()]):
        open_kudos = sum(row.kudos for row in rows.values() if row.account_id == account.id and not row.resolution)
        assert account.held_kudos == open_kudos
        assert account.posted_kudos >= account.minimum_kudos


def test_reconciling_while_kudos_move_finds_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "SLICE_TRANSFERS", 20)
    crowd = [open_balance("1000") for _ in range(4)]
    is_over = threading.Event()

    def move(seed: int) -> int:
        dice = random.Random(seed)
        for step in range(60):
            payer, owner = dice.sample(crowd, 2)
            name = f"{seed}-{step}"
            place_alone(f"upfront:{name}", payer, "3")
            settle_alone(f"upfront:{name}", "2", transfer(f"reply:{name}", payer, owner, "2"))
        return 0

    def reconcile() -> int:
        runs = 0
        while not is_over.is_set():
            assert books.reconcile().is_sound
            runs += 1
        return runs

    def move_and_end(seed: int) -> int:
        try:
            return move(seed)
        finally:
            is_over.set()

    calls: list[Callable[[], int]] = [
        partial(move_and_end, 0),
        *[partial(move, seed) for seed in range(1, 7)],
        reconcile,
    ]

    results = run_at_once(calls)

    assert results[-1] > 0


@pytest.mark.parametrize("part", ["place", "settle", "void", "pay_out"])
def test_a_part_requires_an_open_transaction(part: str) -> None:
    account = open_balance("100")
    calls: dict[str, Callable[[], object]] = {
        "place": lambda: holds.place(account_id=account, kudos=Decimal(1), key="a", cause=CAUSE, now=NOW),
        "settle": lambda: holds.settle(key="a", kudos=Decimal(1), transfers=[], now=NOW),
        "void": lambda: holds.void(keys=["a"], now=NOW),
        "pay_out": lambda: escrow.pay_out(user_id=1, key="a", now=NOW),
    }

    with pytest.raises(AssertionError, match="in the transaction of"):
        calls[part]()


def test_a_lost_settlement_is_tried_again_as_a_whole() -> None:
    """A caller's retry finds nothing of the try that was undone, and posts and settles once."""
    payer, owner = open_balance("100"), open_balance()
    place_alone("upfront:a", payer, "50")
    tries = []

    @retry_on_conflict
    def reply() -> Settlement:
        with transaction.atomic(durable=True):
            settlement = holds.settle(
                key="upfront:a", kudos=Decimal(10), transfers=[transfer("reply:a", payer, owner, "10")], now=NOW
            )
            tries.append(settlement)
            if len(tries) < 3:
                with connection.cursor() as cursor:
                    cursor.execute("DO $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = 'deadlock_detected'; END $$")
            return settlement

    settlement = reply()

    assert len(tries) == 3
    assert settlement.settled_kudos == Decimal(10)
    assert (posted(payer), held(payer), posted(owner)) == (Decimal(90), Decimal(0), Decimal(10))
    assert books.reconcile().is_sound
