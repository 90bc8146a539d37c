"""What meets its like: undone for a deadlock it is done again as a whole, behind a run at work it does nothing."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import transaction

from billing_app.rules.keys import KEPT_AFTER_END
from billing_app.selectors import ledger
from billing_app.services import holds
from hordechat.infra import advisory_locks, clock
from requests_app.services import expired_keys, expiry, faults, statistics
from tests.horde import Horde, one_value
from tests.races import at_once, deadlock_at
from tests.tries import INVALID, lapse, record_of

Prepared = tuple[str, Callable[[], object]]
"""A table of which a use case writes one row, and a call of it that returns something true once it is done."""


def a_reply(horde: Horde) -> Prepared:
    _, generation_id = horde.in_flight()
    return "finished_generations", lambda: horde.reply(generation_id)[1]["reward"]


def the_record_of_a_refusal(horde: Horde) -> Prepared:
    request_id, generation_id = horde.in_flight()

    def refuse() -> bool:
        horde.reply(generation_id, finish_reason="tired")
        return record_of(request_id)[1] == INVALID

    return "waiting_prompts", refuse


def a_fault(horde: Horde) -> Prepared:
    _, generation_id = horde.in_flight()
    return "finished_generations", lambda: horde.fault(generation_id)[0] == 200


def the_sweep_of_a_lease(horde: Horde) -> Prepared:
    horde.in_flight()
    lapse()
    return "finished_generations", lambda: faults.abort_lapsed(now=clock.now())


def a_cancel(horde: Horde) -> Prepared:
    request_id = horde.queued()
    return "waiting_prompts", lambda: horde.cancel(request_id)[0] == 200


def an_expiry(horde: Horde) -> Prepared:
    horde.queued()
    return "waiting_prompts", lambda: expiry.expire_batch(now=clock.now() + timedelta(hours=1))


def a_roll_up(horde: Horde) -> Prepared:
    a_reply(horde)[1]()
    return "finished_generations", statistics.roll_up_batch


def the_end_of_a_minutes_totals(horde: Horde) -> Prepared:
    a_roll_up(horde)[1]()
    statistics.roll_up_batch()
    return "generation_totals", lambda: statistics.prune_batch(now=clock.now() + timedelta(hours=3))


def the_end_of_a_shared_key(horde: Horde) -> Prepared:
    horde.share_key(horde.requester, expires_at=clock.now())
    return "shared_keys", lambda: expired_keys.prune_batch(now=clock.now() + KEPT_AFTER_END)


def the_lapse_of_a_hold(horde: Horde) -> Prepared:
    account_id = one_value("SELECT id FROM accounts WHERE user_id = %s AND kind = 'balance'", [horde.requester.id])
    with transaction.atomic():
        now = clock.now()
        holds.place(account_id=account_id, kudos=Decimal(1), key="h", cause=uuid4(), now=now, expires_at=now)
    return "holds", lambda: holds.lapse_batch(now=clock.now())


@pytest.mark.parametrize(
    "prepare",
    [
        a_reply,
        the_record_of_a_refusal,
        a_fault,
        the_sweep_of_a_lease,
        a_cancel,
        an_expiry,
        a_roll_up,
        the_end_of_a_minutes_totals,
        the_end_of_a_shared_key,
        the_lapse_of_a_hold,
    ],
)
def test_what_a_deadlock_undid_is_done_again(committed_horde: Horde, prepare: Callable[[Horde], Prepared]) -> None:
    table, call = prepare(committed_horde)

    with deadlock_at(table):
        assert call()

    assert ledger.reconcile().is_sound


@pytest.mark.parametrize(
    ("lock", "prepare"),
    [
        ("abort lapsed leases", the_sweep_of_a_lease),
        ("expire requests", an_expiry),
        (statistics.LOCK, a_roll_up),
        (statistics.LOCK, the_end_of_a_minutes_totals),
        ("prune shared keys", the_end_of_a_shared_key),
        ("lapse holds", the_lapse_of_a_hold),
    ],
)
def test_a_batch_is_left_to_the_run_that_is_at_it(
    committed_horde: Horde, lock: str, prepare: Callable[[Horde], Prepared]
) -> None:
    _, call = prepare(committed_horde)

    with transaction.atomic():
        assert advisory_locks.try_lock(lock)
        assert at_once(call) == [0]

    assert call() == 1
