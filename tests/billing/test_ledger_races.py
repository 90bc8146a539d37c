"""The ledger's sums are right, its keys count once and nothing deadlocks, whoever posts at the same moment."""

import random
import threading
import time
from decimal import Decimal
from functools import partial

import pytest
from django.db import connection, transaction

from billing_app.models import Transfer
from billing_app.rules.accounts import HouseAccount, TransferKind
from billing_app.selectors import ledger as books
from billing_app.services import ledger
from billing_app.services.ledger import NewTransfer, Posting
from tests.billing.books import NOW, open_balance, posted, transfer
from tests.billing.crowds import CONNECTIONS, post_alone, post_each, run_at_once

pytestmark = pytest.mark.usefixtures("committed")

BATCHES_A_CONNECTION = 20


def test_a_key_posted_by_all_at_once_counts_once() -> None:
    payer, owner = open_balance("100"), open_balance()

    postings = run_at_once([partial(post_alone, [transfer("reply:a", payer, owner, "10")])] * CONNECTIONS)

    assert sorted(len(posting.posted_keys) for posting in postings) == [0] * (CONNECTIONS - 1) + [1]
    assert (posted(payer), posted(owner)) == (Decimal(90), Decimal(10))
    assert books.reconcile().is_sound


def test_debits_at_once_are_forgiven_exactly_what_is_missing() -> None:
    payer = open_balance("100")

    postings = run_at_once(
        [
            partial(post_alone, [transfer(f"tax:{number}", payer, HouseAccount.TAX, "20")])
            for number in range(CONNECTIONS)
        ]
    )

    assert posted(payer) == Decimal(25)
    assert sum(posting.forgiven_kudos for posting in postings) == CONNECTIONS * 20 - 75
    assert books.reconcile().is_sound


def test_crowds_in_both_directions_neither_deadlock_nor_lose_a_hundredth() -> None:
    crowd = [open_balance("100000") for _ in range(5)]
    dice = random.Random(7)
    shared = [transfer(f"tax:shared-{number}", dice.choice(crowd), HouseAccount.TAX, "3") for number in range(30)]
    batches: list[list[list[NewTransfer]]] = []
    for number in range(CONNECTIONS):
        own = []
        for step in range(BATCHES_A_CONNECTION):
            payer, owner = dice.sample(crowd, 2) if step % 5 else [dice.choice(crowd)] * 2
            batch = [
                transfer(f"reply:{number}-{step}", payer, owner, f"{dice.randint(1, 900)}.{dice.randint(10, 99)}"),
                transfer(f"burn:{number}-{step}", payer, HouseAccount.BURN, "1", kind=TransferKind.BURN),
                *dice.sample(shared, 2),
            ]
            dice.shuffle(batch)
            own.append(batch)
        batches.append(own)
    expected = dict.fromkeys(crowd, Decimal(100000))
    once = {entry.idempotency_key: entry for own in batches for batch in own for entry in batch}
    for entry in once.values():
        for account, kudos in ((entry.debit_account, -entry.amount), (entry.credit_account, entry.amount)):
            if account > 0:
                expected[account] += kudos

    postings = run_at_once([partial(post_each, own) for own in batches])

    posted_keys = [key for own in postings for posting in own for key in posting.posted_keys]
    assert sorted(posted_keys) == sorted(once)
    assert {account: posted(account) for account in crowd} == expected
    assert Transfer.objects.filter(kind=TransferKind.FORGIVEN).count() == 0
    assert books.reconcile().is_sound


def test_the_same_keys_over_different_accounts_count_once_and_wait_in_one_order() -> None:
    payers = [open_balance("1000") for _ in range(CONNECTIONS)]
    dice = random.Random(7)
    numbers = range(60)

    postings = run_at_once(
        [
            partial(
                post_alone,
                [transfer(f"tax:{number}", payer, HouseAccount.TAX, "1") for number in dice.sample(numbers, 60)],
            )
            for payer in payers
        ]
    )

    assert sum(len(posting.posted_keys) for posting in postings) == 60
    assert sum(posted(payer) for payer in payers) == 1000 * CONNECTIONS - 60
    assert books.reconcile().is_sound


def test_a_post_that_waited_reads_the_balance_it_waited_for() -> None:
    payer, owner = open_balance("100"), open_balance()
    first_is_posted = threading.Event()
    second_may_be_waiting = threading.Event()

    def post_and_linger() -> Posting:
        with transaction.atomic(durable=True):
            posting = ledger.post([transfer("reply:first", payer, owner, "70")], now=NOW)
            first_is_posted.set()
            assert second_may_be_waiting.wait(timeout=20)
        return posting

    def post_second() -> Posting:
        assert first_is_posted.wait(timeout=20)
        return post_alone([transfer("reply:second", payer, owner, "70"), transfer("reply:first", payer, owner, "70")])

    def watch() -> Posting | None:
        for _ in range(1000):
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND wait_event_type = 'Lock' AND query LIKE '-- post:%%'"
                )
                if cursor.fetchone() == (1,):
                    break
            time.sleep(0.01)
        second_may_be_waiting.set()
        return None

    _, second, _ = run_at_once([post_and_linger, post_second, watch])

    assert second == Posting(posted_keys=frozenset({"reply:second"}), forgiven_kudos=Decimal(65))
    assert (posted(payer), posted(owner)) == (Decimal(25), Decimal(140))
    assert books.reconcile().is_sound


def test_requires_an_open_transaction() -> None:
    payer = open_balance("100")

    with pytest.raises(AssertionError, match="kudos move in the transaction of what causes them"):
        ledger.post([transfer("tax:a", payer, HouseAccount.TAX, "1")], now=NOW)

    assert posted(payer) == Decimal(100)


def test_what_was_posted_goes_when_its_cause_is_rolled_back() -> None:
    payer, owner = open_balance("100"), open_balance()

    def post_and_fail() -> None:
        with transaction.atomic(durable=True):
            ledger.post([transfer("reply:a", payer, owner, "10")], now=NOW)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        post_and_fail()
    posting = post_alone([transfer("reply:a", payer, owner, "10")])

    assert posting.posted_keys == frozenset({"reply:a"})
    assert (posted(payer), posted(owner)) == (Decimal(90), Decimal(10))
