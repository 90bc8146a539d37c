"""Faults, replies and pops of one request at once: it is faulted once, and nothing of it goes out after."""

from datetime import timedelta
from typing import Any

import pytest

from billing_app.selectors import ledger
from hordechat.infra import clock
from requests_app.services import faults
from tests.horde import MODEL, Horde, count_rows, one_value
from tests.races import at_once, behind_a_lock_on, codes, slow_writes, watching
from tests.signals import listening
from tests.tries import NONCONFORMANT, counted, counters, refuse, strict_in_flight


def near_its_limit(horde: Horde) -> str:
    """Queue a chat request of which two jobs were given up."""
    request_id = horde.queued()
    for _ in range(2):
        horde.fault(horde.pop()[1]["id"])
    return request_id


def taken_text(horde: Horde, *, slots: int, taken: int) -> tuple[str, list[str]]:
    request_id = horde.queued_text(params={"n": slots}, models=[MODEL])
    ids: list[str] = horde.pop_text(amount=taken)[1]["ids"]
    assert len(ids) == taken
    return request_id, ids


def stored_request() -> str:
    """Return the one request's slots, whether it is faulted, and how many of its jobs were given up."""
    return str(one_value("SELECT (n, faulted, faulted_jobs)::text FROM waiting_prompts"))


@pytest.mark.spec("FLW-01", "FLW-26")
@pytest.mark.parametrize("attempt", range(3))
def test_many_faults_of_one_request_fault_it_once(committed_horde: Horde, attempt: int) -> None:
    _, ids = taken_text(committed_horde, slots=9, taken=8)

    answers = at_once(
        *[
            lambda generation_id=generation_id: committed_horde.reply_text(generation_id, "", state="faulted")
            for generation_id in ids
        ]
    )

    assert codes(answers) == ["200"] * 8
    assert stored_request() == "(0,t,8)"
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert counters("text worker") == (8, 8, 0)
    assert ledger.reconcile().is_sound


@pytest.mark.spec("FLW-01")
def test_a_fault_behind_another_one_sees_it_counted(committed_horde: Horde) -> None:
    request_id, ids = taken_text(committed_horde, slots=5, taken=4)
    committed_horde.reply_text(ids[0], "", state="faulted")

    with behind_a_lock_on(request_id) as line:
        line.join(lambda: committed_horde.reply_text(ids[1], "", state="faulted"))
        line.join(lambda: committed_horde.reply_text(ids[2], "", state="faulted"))

    assert stored_request() == "(0,t,3)"
    assert count_rows("queue_rows") == {"queue_rows": 0}


@pytest.mark.spec("FLW-01")
def test_the_third_fault_takes_out_a_queue_row_that_came_back_while_it_waited(committed_horde: Horde) -> None:
    request_id, ids = taken_text(committed_horde, slots=3, taken=3)
    committed_horde.reply_text(ids[0])
    one_value("UPDATE waiting_prompts SET faulted_jobs = 1 RETURNING 1")

    with behind_a_lock_on(request_id) as line:
        line.join(lambda: committed_horde.reply_text(ids[1], "", state="faulted"))
        line.join(lambda: committed_horde.reply_text(ids[2], "", state="faulted"))

    assert stored_request() == "(0,t,3)"
    assert count_rows("queue_rows") == {"queue_rows": 0}


@pytest.mark.spec("FLW-01", "FLW-06")
@pytest.mark.parametrize("lapses", [False, True])
def test_nobody_ever_sees_the_slot_of_the_third_fault(committed_horde: Horde, lapses: bool) -> None:
    near_its_limit(committed_horde)
    generation_id = committed_horde.pop()[1]["id"]
    late = clock.now() + timedelta(seconds=200)
    look = """
        SELECT processing_gens.faulted, waiting_prompts.faulted, waiting_prompts.n, (SELECT count(*) FROM queue_rows)
          FROM processing_gens
          JOIN waiting_prompts ON waiting_prompts.id = processing_gens.request_id
         ORDER BY processing_gens.created DESC
         LIMIT 1
    """

    with slow_writes("processing_gens", "waiting_prompts", "queue_rows", "workers"), watching(look) as seen:
        if lapses:
            assert faults.abort_lapsed(now=late) == 1
        else:
            assert committed_horde.fault(generation_id)[0] == 200

    assert seen == {(False, False, 0, 0), (True, True, 0, 0)}


@pytest.mark.spec("FLW-29")
@pytest.mark.parametrize("attempt", range(5))
def test_the_third_fault_against_a_pop_of_what_still_waits(committed_horde: Horde, attempt: int) -> None:
    request_id, ids = taken_text(committed_horde, slots=4, taken=3)
    committed_horde.pop_text(name="another", models=["org/other"])
    for generation_id in ids[:2]:
        committed_horde.reply_text(generation_id, "", state="faulted")

    _, (status, popped) = at_once(
        lambda: committed_horde.reply_text(ids[2], "", state="faulted"),
        lambda: committed_horde.pop_text(name="another", amount=9),
    )

    assert status == 200
    assert stored_request() == "(0,t,3)"
    assert count_rows("queue_rows") == {"queue_rows": 0}
    shown = committed_horde.text_status(request_id)[1]
    assert (shown["processing"], shown["done"]) == (len(popped["ids"]), True)
    assert committed_horde.pop_text(name="another")[1]["id"] is None
    for generation_id in popped["ids"]:
        assert committed_horde.reply_text(generation_id)[0] == 200
    assert ledger.reconcile().is_sound


@pytest.mark.spec("SIG-16", "SIG-25")
@pytest.mark.parametrize("attempt", range(3))
def test_a_third_fault_sent_many_times_and_swept_is_announced_once(committed_horde: Horde, attempt: int) -> None:
    request_id = near_its_limit(committed_horde)
    generation_id = committed_horde.pop()[1]["id"]
    late = clock.now() + timedelta(seconds=200)

    def sweep() -> tuple[int, dict[str, Any]]:
        return (200, {}) if faults.abort_lapsed(now=late) else (0, {"rc": "nothing to sweep"})

    with listening(request_id) as heard:
        answers = at_once(*[lambda: committed_horde.fault(generation_id)] * 6, *[sweep] * 2)

    assert codes(answers).count("200") == 1
    assert heard == [{"id": request_id, "event": "faulted", "generations": 0}]
    assert stored_request() == "(0,t,3)"
    assert counters() == (3, 3, 0)


@pytest.mark.spec("FLW-29")
@pytest.mark.parametrize("attempt", range(5))
def test_the_third_fault_against_a_reply_of_another_job(committed_horde: Horde, attempt: int) -> None:
    request_id, ids = taken_text(committed_horde, slots=4, taken=4)
    for generation_id in ids[:2]:
        committed_horde.reply_text(generation_id, "", state="faulted")

    answers = at_once(
        lambda: committed_horde.reply_text(ids[2], "", state="faulted"), lambda: committed_horde.reply_text(ids[3])
    )

    assert codes(answers) == ["200", "200"]
    assert stored_request() == "(0,t,3)"
    assert committed_horde.text_status(request_id)[1]["finished"] == 1
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'reply'") == 1
    assert ledger.reconcile().is_sound


@pytest.mark.parametrize("attempt", range(3))
def test_the_third_fault_against_a_cancel(committed_horde: Horde, attempt: int) -> None:
    request_id = near_its_limit(committed_horde)
    generation_id = committed_horde.pop()[1]["id"]

    with listening(request_id) as heard:
        answers = at_once(lambda: committed_horde.fault(generation_id), lambda: committed_horde.cancel(request_id))

    assert codes(answers) == ["200", "200"]
    is_faulted = one_value("SELECT faulted FROM waiting_prompts")
    assert one_value("SELECT cancelled_at IS NOT NULL FROM waiting_prompts") is not is_faulted
    assert [message["event"] for message in heard] == ["faulted" if is_faulted else "cancelled"]
    assert committed_horde.status(request_id)[1]["done"] is True
    assert count_rows("queue_rows") == {"queue_rows": 0}


@pytest.mark.spec("SPD-27", "LSE-23")
@pytest.mark.parametrize("end", ["a reply", "a renewal"])
def test_a_sweep_that_comes_too_late_counts_no_abort(committed_horde: Horde, end: str) -> None:
    request_id, [generation_id] = taken_text(committed_horde, slots=1, taken=1)
    one_value("UPDATE processing_gens SET over_capacity_at_assignment = true RETURNING 1")
    late = clock.now() + timedelta(seconds=200)
    size = {"worker_trusted": "true", "size_bucket": "<=512"}

    def counts() -> tuple[float, ...]:
        return (
            counted("horde_text_gate_shadow_outcomes_total", **size, outcome="completed"),
            counted("horde_text_gate_shadow_outcomes_total", **size, outcome="aborted"),
            counted("horde_text_stale_aborts_total", worker_trusted="true", chat="false"),
        )

    completed, aborted, stale = counts()
    with behind_a_lock_on(request_id) as line:
        if end == "a reply":
            line.join(lambda: committed_horde.reply_text(generation_id))
        sweep = line.join(lambda: faults.abort_lapsed(now=late))
        if end == "a renewal":
            one_value("UPDATE processing_gens SET deadline = %s RETURNING 1", [late + timedelta(seconds=1)])

    assert sweep.result() == 0
    assert counts() == (completed + (end == "a reply"), aborted, stale)


@pytest.mark.spec("RFL-26")
def test_nonconformant_replies_of_one_worker_at_once_are_all_counted(committed_horde: Horde) -> None:
    ids = [strict_in_flight(committed_horde)[1] for _ in range(8)]
    for generation_id in ids:
        refuse(committed_horde, generation_id, NONCONFORMANT)

    with slow_writes("workers"):
        answers = at_once(
            *[lambda generation_id=generation_id: committed_horde.fault(generation_id) for generation_id in ids]
        )

    assert codes(answers) == ["200"] * 8
    assert counters() == (0, 0, 8)


def test_dropped_and_nonconformant_jobs_of_one_worker_at_once_are_all_counted(committed_horde: Horde) -> None:
    ids = [strict_in_flight(committed_horde)[1] for _ in range(12)]
    for generation_id in ids[::2]:
        refuse(committed_horde, generation_id, NONCONFORMANT)
    one_value("UPDATE workers SET aborted_jobs = 16, aborts_since = now() RETURNING 1")

    answers = at_once(
        *[lambda generation_id=generation_id: committed_horde.fault(generation_id) for generation_id in ids]
    )

    assert codes(answers) == ["200"] * 12
    # Twenty-two dropped jobs: the twenty-first puts it into maintenance, and the count begins anew.
    assert counters() == (1, 6, 6)
    assert one_value("SELECT (maintenance, suspicions)::text FROM workers") == "(t,1)"
