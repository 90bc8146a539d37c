"""A worker may say why it gives a chat job up: the request says so in our words, and every such fault is counted."""

from typing import Any

import pytest

from tests.horde import MODEL, Horde, one_value
from tests.races import another_connection, behind_a_lock_on
from tests.signals import listening
from tests.tries import (
    CONFORMANT,
    FAULT_MESSAGES,
    INVALID,
    NO_RECORD,
    NONCONFORMANT,
    REFUSED,
    UNKNOWN_REASONS,
    counters,
    faults_counted,
    next_try,
    record_of,
    refuse,
    refusing_rows,
    strict_in_flight,
    strict_request,
)

WORKER_FAULT = "ChatWorkerFault"
ERROR = (FAULT_MESSAGES["generation_error"], WORKER_FAULT)
OVERFLOW = (FAULT_MESSAGES["prompt_overflow"], WORKER_FAULT)


@pytest.mark.spec("WFR-01", "WFR-02", "WFR-03", "WFR-04", "WFR-05", "WFR-06", "WFR-07", "WFR-08")
@pytest.mark.parametrize(("reason", "message"), FAULT_MESSAGES.items())
def test_a_known_reason_is_written_in_our_words(horde: Horde, reason: str, message: str) -> None:
    request_id, generation_id = horde.in_flight()
    other_id = horde.submit()[1]["id"]

    assert horde.fault(generation_id, fault_reason=reason) == (200, {"reward": 0})

    assert record_of(request_id) == (message, "ChatWorkerFault")
    assert record_of(other_id) == NO_RECORD
    assert one_value("SELECT (faulted, chat_refusal_rc)::text FROM processing_gens") == "(t,)"


@pytest.mark.spec("WFR-02", "WFR-14", "WFR-24")
@pytest.mark.parametrize("reason", UNKNOWN_REASONS, ids=lambda reason: repr(reason)[:24])
def test_an_unknown_reason_is_accepted_and_nothing_written(horde: Horde, reason: Any) -> None:
    request_id, generation_id = horde.in_flight()

    assert horde.fault(generation_id, fault_reason=reason) == (200, {"reward": 0})

    assert record_of(request_id) == NO_RECORD
    shown = horde.status(request_id)[1]
    assert (shown["waiting"], shown["restarted"]) == (1, 1)


@pytest.mark.spec("WFR-13", "WFR-24")
@pytest.mark.parametrize("is_null", [False, True])
def test_a_fault_without_a_reason_is_accepted_and_nothing_written(horde: Horde, is_null: bool) -> None:
    request_id, generation_id = horde.in_flight()
    body = {"id": generation_id, "state": "faulted", "model_id": MODEL} | ({"fault_reason": None} if is_null else {})
    before = faults_counted()

    answer = horde.call("POST", "generate/text/submit", body, api_key=horde.owner.api_key)

    assert answer == (200, {"reward": 0})
    assert record_of(request_id) == NO_RECORD
    assert horde.status(request_id)[1]["waiting"] == 1
    assert faults_counted() == before | {("none", "true"): before.get(("none", "true"), 0) + 1}


@pytest.mark.spec("SUB-17", "WFR-15")
@pytest.mark.parametrize("state", ["ok", "censored", "csam"])
def test_a_reply_is_stored_whatever_reason_it_carries(horde: Horde, state: str) -> None:
    request_id, generation_id = horde.in_flight()
    before = faults_counted()

    status, body = horde.reply(generation_id, state=state, fault_reason="generation_error")

    assert (status, body["reward"] > 0) == (200, True)
    assert record_of(request_id) == NO_RECORD
    assert horde.status(request_id)[1]["finished"] == 1
    assert counters() == (0, 0, 0)
    assert faults_counted() == before


@pytest.mark.spec("SUB-17", "WFR-15")
def test_a_refused_reply_leaves_its_refusal_and_not_the_reason_it_carries(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    before = faults_counted()

    status, body = horde.reply(generation_id, finish_reason="tired", fault_reason="generation_error")

    assert (status, body["rc"]) == (400, INVALID)
    assert record_of(request_id) == (body["message"], INVALID)
    assert faults_counted() == before


@pytest.mark.spec("WFR-15", "WFR-27")
@pytest.mark.parametrize("reason", ["generation_error", "a reason of tomorrow", 5])
def test_a_text_jobs_fault_is_taken_without_a_text_and_its_reason_ignored(horde: Horde, reason: object) -> None:
    request_id = horde.queued_text(models=[MODEL])
    generation_id = horde.pop_text()[1]["id"]
    before = faults_counted()
    body = {"id": generation_id, "state": "faulted", "fault_reason": reason}

    answer = horde.call("POST", "generate/text/submit", body, api_key=horde.owner.api_key)

    assert answer == (200, {"reward": 0})
    shown = horde.text_status(request_id)[1]
    assert (shown["waiting"], shown["restarted"]) == (1, 1)
    assert record_of(request_id) == NO_RECORD
    assert counters("text worker") == (1, 1, 0)
    assert faults_counted() == before


@pytest.mark.spec("WFR-09")
def test_a_reason_is_committed_before_the_fault_is_applied(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with refusing_rows("processing_gens", "NOT faulted"):
        status, _ = committed_horde.fault(generation_id, fault_reason="generation_error")

    assert status == 500, "the fault has to fail for this"
    with another_connection() as other:
        row = other.execute(
            "SELECT request.id::text, chat_fault_reason, chat_fault_rc, request.n, processing_gens.faulted"
            "  FROM waiting_prompts AS request JOIN processing_gens ON request_id = request.id"
        ).fetchone()
    assert row == (request_id, *ERROR, 0, False)


@pytest.mark.spec("WFR-10", "SIG-06")
def test_the_fault_that_is_one_too_many_is_told_with_its_reason(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    with listening(request_id) as heard:
        for reason in (None, None, "prompt_overflow"):
            committed_horde.fault(committed_horde.pop()[1]["id"], fault_reason=reason)
        body = committed_horde.status(request_id)[1]

    assert (body["faulted"], body["fault_reason"], body["fault_rc"]) == (True, *OVERFLOW)
    [message] = heard
    assert message == {
        "id": request_id,
        "event": "faulted",
        "generations": 0,
        "fault_reason": OVERFLOW[0],
        "fault_rc": OVERFLOW[1],
    }


@pytest.mark.spec("WFR-11")
@pytest.mark.parametrize(("ends_with", "answer"), [("a reply", "DuplicateGen"), ("a fault", "AbortedGen")])
def test_nothing_is_written_of_a_job_that_is_not_pending(horde: Horde, ends_with: str, answer: str) -> None:
    request_id, generation_id = horde.in_flight()
    if ends_with == "a reply":
        horde.reply(generation_id)
    else:
        horde.fault(generation_id)

    status, body = horde.fault(generation_id, fault_reason="generation_error")

    assert (status, body["rc"]) == (400, answer)
    assert record_of(request_id) == NO_RECORD


@pytest.mark.spec("WFR-11")
@pytest.mark.parametrize(("end", "answer"), [("faulted = true", "AbortedGen"), ("generation = ''", "DuplicateGen")])
def test_nothing_is_written_of_a_job_that_ends_before_the_record(committed_horde: Horde, end: str, answer: str) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        fault = line.join(lambda: committed_horde.fault(generation_id, fault_reason="generation_error"))
        one_value(f"UPDATE processing_gens SET {end} RETURNING 1")

    assert (fault.result()[0], fault.result()[1]["rc"]) == (400, answer)
    assert record_of(request_id) == NO_RECORD


@pytest.mark.spec("SUB-45")
def test_a_fault_that_names_another_model_writes_nothing(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()

    for model_id, rc in (("other/model", "ChatModelMismatch"), (None, INVALID), (5, INVALID)):
        status, body = horde.fault(generation_id, model_id=model_id, fault_reason="generation_error")
        assert (status, body["rc"]) == (400, rc)

    assert record_of(request_id) == NO_RECORD
    assert one_value("SELECT (faulted, chat_refusal_rc)::text FROM processing_gens") == "(f,)"
    assert counters() == (0, 0, 0)


@pytest.mark.spec("WFR-12")
@pytest.mark.parametrize("rc", REFUSED)
@pytest.mark.parametrize("reason", FAULT_MESSAGES)
def test_a_refusal_of_the_same_job_is_kept(horde: Horde, rc: str, reason: str) -> None:
    request_id, generation_id = strict_in_flight(horde)
    message = refuse(horde, generation_id, rc)

    assert horde.fault(generation_id, fault_reason=reason)[0] == 200

    assert record_of(request_id) == (message, rc)


@pytest.mark.spec("WFR-12")
def test_a_refusal_between_the_look_and_the_record_is_kept(committed_horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)

    with behind_a_lock_on(request_id) as line:
        refused = line.join(lambda: committed_horde.reply(generation_id, **REFUSED[NONCONFORMANT]))
        fault = line.join(lambda: committed_horde.fault(generation_id, fault_reason="generation_error"))

    assert (refused.result()[0], fault.result()[0]) == (400, 200)
    assert record_of(request_id) == (refused.result()[1]["message"], NONCONFORMANT)
    assert counters() == (0, 0, 1)


@pytest.mark.spec("WFR-25")
def test_what_an_earlier_job_left_is_replaced(horde: Horde) -> None:
    request_id, first = strict_in_flight(horde)
    refuse(horde, first, NONCONFORMANT)
    horde.fault(first, fault_reason="reply_refused")

    horde.fault(next_try(horde), fault_reason="prompt_overflow")
    assert record_of(request_id) == OVERFLOW

    horde.fault(next_try(horde), fault_reason="generation_error")
    assert record_of(request_id) == ERROR


@pytest.mark.spec("WFR-13", "WFR-14")
@pytest.mark.parametrize("reason", [None, "a reason of tomorrow"])
def test_what_an_earlier_job_left_stays_when_the_next_says_nothing_known(horde: Horde, reason: str | None) -> None:
    request_id, first = strict_in_flight(horde)
    horde.fault(first, fault_reason="prompt_overflow")

    horde.fault(next_try(horde), fault_reason=reason)

    assert record_of(request_id) == OVERFLOW


@pytest.mark.spec("WFR-16")
def test_a_reason_that_cannot_be_written_is_logged_and_the_fault_applied(
    committed_horde: Horde, caplog: pytest.LogCaptureFixture
) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with refusing_rows("waiting_prompts", "chat_fault_rc IS NULL"):
        answer = committed_horde.fault(generation_id, fault_reason="generation_error")

    assert answer == (200, {"reward": 0})
    [line] = [line for line in caplog.records if line.getMessage() == "a fault record was not written"]
    assert (line.levelname, str(vars(line)["generation_id"])) == ("ERROR", generation_id)
    assert record_of(request_id) == NO_RECORD
    shown = committed_horde.status(request_id)[1]
    assert (shown["waiting"], shown["restarted"]) == (1, 1)
    assert counters() == (1, 1, 0)


@pytest.mark.spec("WFR-17")
@pytest.mark.parametrize("reason", [*FAULT_MESSAGES, NONCONFORMANT, "a reason of tomorrow"])
def test_no_reason_exempts_a_worker(horde: Horde, reason: str) -> None:
    _, generation_id = horde.in_flight()

    horde.fault(generation_id, fault_reason=reason)

    assert counters() == (1, 1, 0)


def test_the_reasons_of_a_request_reach_its_client_in_our_words_alone(horde: Horde) -> None:
    request_id = strict_request(horde)
    for reason in ("tool_violation", "the worker's own words", None):
        horde.fault(next_try(horde), fault_reason=reason)

    body = horde.status(request_id)[1]

    assert (body["fault_reason"], body["fault_rc"]) == (FAULT_MESSAGES["tool_violation"], WORKER_FAULT)
    assert "own words" not in str(body)


def test_a_reply_after_a_refusal_ends_in_no_fault_at_all(horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(horde)
    before = faults_counted()
    refuse(horde, generation_id, INVALID)

    assert horde.reply(generation_id, **CONFORMANT)[0] == 200

    assert faults_counted() == before
    assert horde.status(request_id)[1]["faulted"] is False
