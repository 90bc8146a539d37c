"""Whoever races for a slot, a reply or a fault: one wins, kudos are conserved, no slot is lost or added."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from billing_app.selectors import ledger
from hordechat.infra import clock
from requests_app.models import Generation
from requests_app.services import expiry, faults
from tests.horde import Answer, Horde, count_rows, one_value
from tests.races import PARALLEL, at_once, behind_a_lock_on, codes, slow_writes, watching

REPLY_COLUMNS = (
    "message", "finish_reason", "native_finish_reason", "prompt_tokens", "completion_tokens", "reasoning_tokens",
)  # fmt: skip
NOTHING_STORED = dict.fromkeys(REPLY_COLUMNS)


def numbered_reply(number: int) -> dict[str, Any]:
    """Return a reply that differs from every other number's in all it stores."""
    return {
        "message": {"role": "assistant", "content": f"Reply {number}"},
        "finish_reason": ("stop", "length")[number % 2],
        "native_finish_reason": f"native {number}",
        "prompt_tokens": 100 + number,
        "completion_tokens": 200 + number,
        "reasoning_tokens": 300 + number,
    }


def stored_reply() -> dict[str, Any]:
    """Return what the one generation stored of a reply, after a check that its columns agree with each other."""
    generation = Generation.objects.values(*REPLY_COLUMNS, "generation", "charge_basis", "kudos").get()
    stored = {column: generation[column] for column in REPLY_COLUMNS}
    is_stored = stored["message"] is not None
    assert generation["generation"] == (stored["message"]["content"] if is_stored else None)
    assert (generation["charge_basis"] is not None, generation["kudos"] > 0) == (is_stored, is_stored)
    return stored


def assert_sound_ledger() -> None:
    assert ledger.reconcile().is_sound


def test_one_of_many_workers_gets_the_only_slot(committed_horde: Horde) -> None:
    committed_horde.queued()
    names = [f"worker {number}" for number in range(PARALLEL)]
    for name in names:
        one_value("UPDATE waiting_prompts SET active = false RETURNING 1")
        committed_horde.pop(name=name)
    one_value("UPDATE waiting_prompts SET active = true RETURNING 1")

    answers = at_once(*[lambda name=name: committed_horde.pop(name=name) for name in names])

    assert len([body["id"] for _, body in answers if body["id"] is not None]) == 1
    assert count_rows("processing_gens", "queue_rows") == {"processing_gens": 1, "queue_rows": 0}


def test_each_slot_goes_out_once(committed_horde: Horde) -> None:
    names = [f"worker {number}" for number in range(PARALLEL)]
    for name in names:
        committed_horde.pop(name=name)
    one_value("UPDATE users SET concurrency = 60 WHERE id = %s RETURNING 1", [committed_horde.requester.id])
    requests = {committed_horde.submit()[1]["id"] for _ in range(60)}

    def drain(name: str) -> list[str]:
        jobs = []
        while (job := committed_horde.pop(name=name)[1]["id"]) is not None:
            jobs.append(job)
        return jobs

    handed = at_once(*[lambda name=name: drain(name) for name in names])

    jobs = [job for part in handed for job in part]
    assert len(jobs) == len(set(jobs)) == len(requests)
    assert one_value("SELECT count(DISTINCT request_id) FROM processing_gens") == len(requests)


def test_a_pop_passes_over_a_request_that_another_transaction_changes(committed_horde: Horde) -> None:
    head = committed_horde.queued()
    second = committed_horde.submit()[1]["id"]

    with transaction.atomic():
        one_value("SELECT 1 FROM waiting_prompts WHERE id = %s FOR NO KEY UPDATE", [head])
        [(_, popped)] = at_once(committed_horde.pop)

    assert one_value("SELECT request_id::text FROM processing_gens WHERE id = %s", [popped["id"]]) == second


def test_a_pop_waits_for_the_only_request_rather_than_going_idle(committed_horde: Horde) -> None:
    committed_horde.queued()
    is_locked = threading.Event()

    def hold() -> tuple[int, dict[str, Any]]:
        with transaction.atomic():
            one_value("SELECT 1 FROM waiting_prompts FOR NO KEY UPDATE")
            is_locked.set()
            time.sleep(0.3)
        return 200, {"id": None}

    def pop() -> tuple[int, dict[str, Any]]:
        is_locked.wait(timeout=10)
        return committed_horde.pop()

    _, (_, popped) = at_once(hold, pop)

    assert popped["id"] is not None


def test_one_pop_registers_a_new_name(committed_horde: Horde) -> None:
    answers = at_once(*[committed_horde.pop] * PARALLEL)

    assert codes(answers) == ["200"] * PARALLEL
    assert count_rows("workers") == {"workers": 1}


def test_two_owners_racing_for_a_name_get_one_worker(committed_horde: Horde) -> None:
    keys = [committed_horde.owner.api_key, committed_horde.requester.api_key]

    answers = at_once(*[lambda key=key: committed_horde.pop(api_key=key) for key in keys])

    assert codes(answers) == ["200", "WrongCredentials"]


@pytest.mark.spec("SUB-32", "SUB-42", "PRC-01")
@pytest.mark.parametrize("attempt", range(5))
def test_one_of_many_replies_is_stored_and_paid(committed_horde: Horde, attempt: int) -> None:
    request_id, generation_id = committed_horde.in_flight()
    replies = [numbered_reply(number) for number in range(PARALLEL)]

    *answers, fault = at_once(
        *[lambda reply=reply: committed_horde.reply(generation_id, **reply) for reply in replies],
        lambda: committed_horde.fault(generation_id),
    )

    winners = [reply for reply, (status, _) in zip(replies, answers, strict=True) if status == 200]
    assert len(winners) == (1 if fault[1].get("rc") == "DuplicateGen" else 0)
    assert stored_reply() == (winners[0] if winners else NOTHING_STORED)
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'reply'") == len(winners)
    assert one_value("SELECT requests_fulfilled FROM workers") == len(winners)
    assert one_value("SELECT n FROM waiting_prompts WHERE id = %s", [request_id]) == 1 - len(winners)
    assert_sound_ledger()


@pytest.mark.spec("SUB-30", "SUB-32")
def test_a_reply_behind_another_one_writes_nothing(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        first = line.join(lambda: committed_horde.reply(generation_id, **numbered_reply(1)))
        second = line.join(lambda: committed_horde.reply(generation_id, **numbered_reply(2)))

    assert (codes([first.result()]), codes([second.result()])) == (["200"], ["DuplicateGen"])
    assert stored_reply() == numbered_reply(1)


@pytest.mark.spec("SUB-30", "SUB-32")
def test_a_reply_behind_a_cancel_that_ended_its_generation_writes_nothing(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        reply = line.join(lambda: committed_horde.reply(generation_id))
        one_value("UPDATE processing_gens SET faulted = true, cancelled = true RETURNING 1")

    assert codes([reply.result()]) == ["AbortedGen"]
    assert stored_reply() == NOTHING_STORED
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'reply'") == 0


@pytest.mark.spec("SUB-32")
@pytest.mark.parametrize("end", [Horde.reply, Horde.fault])
def test_what_ends_a_job_behind_the_expiry_of_its_request_finds_it_gone(
    committed_horde: Horde, end: Callable[[Horde, str], Answer]
) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        answer = line.join(lambda: end(committed_horde, generation_id))
        for table in ("processing_gens", "waiting_prompts"):
            one_value(f"DELETE FROM {table} RETURNING 1")

    assert (answer.result()[0], answer.result()[1]["rc"]) == (404, "InvalidJobID")
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'reply'") == 0
    assert count_rows("finished_generations") == {"finished_generations": 0}


def test_a_reply_waits_for_its_request_and_holds_nothing_meanwhile(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        reply = line.join(lambda: committed_horde.reply(generation_id))
        assert one_value("SELECT count(*) FROM (SELECT 1 FROM processing_gens FOR UPDATE NOWAIT) g") == 1

    assert reply.result()[0] == 200


@pytest.mark.spec("FLW-19")
@pytest.mark.parametrize("way", ["the worker's fault", "the sweep"])
def test_a_fault_and_its_restart_appear_together(committed_horde: Horde, way: str) -> None:
    _, generation_id = committed_horde.in_flight()
    late = clock.now() + timedelta(seconds=200)
    look = """
        SELECT processing_gens.faulted, waiting_prompts.n, (SELECT count(*) FROM queue_rows)
          FROM processing_gens
          JOIN waiting_prompts ON waiting_prompts.id = processing_gens.request_id
    """

    with slow_writes("processing_gens", "waiting_prompts", "queue_rows", "workers"), watching(look) as seen:
        if way == "the sweep":
            assert faults.abort_lapsed(now=late) == 1
        else:
            assert committed_horde.fault(generation_id)[0] == 200

    assert seen == {(False, 0, 0), (True, 1, 1)}


def test_a_sweep_spares_a_lease_that_was_renewed_while_it_waited(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()
    late = clock.now() + timedelta(seconds=200)

    with behind_a_lock_on(request_id) as line:
        sweep = line.join(lambda: faults.abort_lapsed(now=late))
        one_value("UPDATE processing_gens SET deadline = %s RETURNING 1", [late + timedelta(seconds=1)])

    assert sweep.result() == 0
    assert one_value("SELECT faulted FROM processing_gens") is False
    assert committed_horde.reply(generation_id)[0] == 200


def test_a_slot_comes_back_once_from_many_faults(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    answers = at_once(*[lambda: committed_horde.fault(generation_id)] * PARALLEL)

    assert codes(answers) == ["200"] + ["AbortedGen"] * (PARALLEL - 1)
    assert one_value("SELECT n FROM waiting_prompts WHERE id = %s", [request_id]) == 1
    assert one_value("SELECT aborted_jobs FROM workers") == 1


@pytest.mark.parametrize("attempt", range(5))
def test_a_reply_against_a_fault_against_the_sweep(committed_horde: Horde, attempt: int) -> None:
    request_id, generation_id = committed_horde.in_flight()
    late = clock.now() + timedelta(seconds=200)

    def sweep() -> tuple[int, dict[str, Any]]:
        return (200, {}) if faults.abort_lapsed(now=late) else (0, {"rc": "nothing to sweep"})

    answers = at_once(lambda: committed_horde.reply(generation_id), lambda: committed_horde.fault(generation_id), sweep)

    assert codes(answers).count("200") == 1
    is_stored = one_value("SELECT generation IS NOT NULL FROM processing_gens")
    assert one_value("SELECT faulted FROM processing_gens") is not is_stored
    assert one_value("SELECT n FROM waiting_prompts WHERE id = %s", [request_id]) == (0 if is_stored else 1)
    assert count_rows("queue_rows") == {"queue_rows": 0 if is_stored else 1}
    assert_sound_ledger()


@pytest.mark.parametrize("attempt", range(5))
def test_a_cancel_against_a_pop(committed_horde: Horde, attempt: int) -> None:
    request_id = committed_horde.queued()

    _, (_, popped) = at_once(lambda: committed_horde.cancel(request_id), committed_horde.pop)

    assert one_value("SELECT n FROM waiting_prompts WHERE id = %s", [request_id]) == 0
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert committed_horde.status(request_id)[1]["done"] is (popped["id"] is None)


@pytest.mark.parametrize("attempt", range(5))
def test_a_cancel_against_a_fault(committed_horde: Horde, attempt: int) -> None:
    request_id, generation_id = committed_horde.in_flight()

    at_once(lambda: committed_horde.cancel(request_id), lambda: committed_horde.fault(generation_id))

    body = committed_horde.status(request_id)[1]
    assert (body["waiting"], body["done"]) == (0, True)
    assert count_rows("queue_rows") == {"queue_rows": 0}


def test_a_cancel_behind_a_fault_takes_its_slot_out_again(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        line.join(lambda: committed_horde.fault(generation_id))
        line.join(lambda: committed_horde.cancel(request_id))

    assert one_value("SELECT n FROM waiting_prompts WHERE cancelled_at IS NOT NULL") == 0
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert committed_horde.status(request_id)[1]["done"] is True


def test_a_cancel_behind_a_reply_finds_the_request_complete(committed_horde: Horde) -> None:
    committed_horde.pop(name="paused")
    one_value("UPDATE workers SET paused = true RETURNING 1")
    request_id = committed_horde.queued()
    assert committed_horde.pop(name="paused")[1]["id"] is not None, "a fake, which nobody waits for"
    committed_horde.fault(committed_horde.pop()[1]["id"])
    generation_id = committed_horde.pop()[1]["id"]

    with behind_a_lock_on(request_id) as line:
        line.join(lambda: committed_horde.reply(generation_id))
        line.join(lambda: committed_horde.cancel(request_id))

    assert one_value("SELECT count(*) FROM waiting_prompts WHERE cancelled_at IS NULL") == 1
    assert committed_horde.status(request_id)[1]["finished"] == 1


@pytest.mark.parametrize("attempt", range(5))
def test_a_cancel_against_a_reply_and_a_fault(committed_horde: Horde, attempt: int) -> None:
    request_id, generation_id = committed_horde.in_flight()

    _, reply, fault = at_once(
        lambda: committed_horde.cancel(request_id),
        lambda: committed_horde.reply(generation_id),
        lambda: committed_horde.fault(generation_id),
    )

    body = committed_horde.status(request_id)[1]
    assert codes([reply, fault]) in (["200", "AbortedGen"], ["200", "DuplicateGen"])
    assert (body["waiting"], body["processing"], body["done"]) == (0, 0, True)
    assert (body["finished"], body["restarted"]) == ((1, 0) if reply[0] == 200 else (0, 1))
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert_sound_ledger()


@pytest.mark.parametrize("attempt", range(5))
def test_a_pop_against_the_expiry(committed_horde: Horde, attempt: int) -> None:
    request_id = committed_horde.queued()
    one_value("UPDATE waiting_prompts SET expiry = now() + interval '1 h' RETURNING 1")
    later = clock.now() + timedelta(hours=2)

    _, (_, popped) = at_once(lambda: (expiry.expire_batch(now=later), {}), committed_horde.pop)

    is_gone = committed_horde.status(request_id)[0] == 404
    assert is_gone or popped["id"] is not None
    if is_gone and popped["id"] is not None:
        assert committed_horde.reply(popped["id"])[1]["rc"] == "InvalidJobID"
    assert count_rows("queue_rows") == {"queue_rows": 0}


def test_sweeping_twice_at_once_aborts_each_lapsed_lease_once(committed_horde: Horde) -> None:
    committed_horde.pop()
    for _ in range(20):
        committed_horde.submit()
        committed_horde.pop()
    late = clock.now() + timedelta(seconds=200)

    counts = at_once(*[lambda: faults.abort_lapsed(now=late)] * 2)

    assert sum(counts) == 20
    assert one_value("SELECT aborted_jobs FROM workers") == 20
    assert count_rows("queue_rows") == {"queue_rows": 20}
    assert one_value("SELECT count(*) FROM waiting_prompts WHERE n = 1") == 20


def test_expiring_twice_at_once_deletes_each_request_once(committed_horde: Horde) -> None:
    committed_horde.pop()
    for _ in range(30):
        committed_horde.submit()
        committed_horde.pop()
    later = clock.now() + timedelta(hours=1)

    counts = at_once(*[lambda: expiry.expire_batch(now=later)] * 2)

    assert sum(counts) == 30
    assert count_rows("waiting_prompts", "processing_gens") == {"waiting_prompts": 0, "processing_gens": 0}


def test_a_sweep_leaves_alone_what_another_holds(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    later = clock.now() + timedelta(hours=1)

    with transaction.atomic():
        one_value("SELECT 1 FROM waiting_prompts WHERE id = %s FOR NO KEY UPDATE", [request_id])
        [count] = at_once(lambda: expiry.expire_batch(now=later))

    assert count == 0
    assert expiry.expire_batch(now=later) == 1
