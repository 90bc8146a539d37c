"""A refused reply is written down before its 400, and what it was refused for decides how its worker is counted."""

from uuid import UUID

import pytest

from hordechat.contract.submit import ChatSubmitInvalid
from hordechat.infra import clock
from requests_app.services import fault_record, faults
from tests.horde import MODEL, Horde, count_rows, one_value
from tests.races import another_connection, behind_a_lock_on
from tests.signals import listening
from tests.tries import (
    CONFORMANT,
    INVALID,
    MISMATCH,
    NO_RECORD,
    NONCONFORMANT,
    REFUSED,
    counters,
    lapse,
    next_try,
    pause_workers,
    record_of,
    refusal_of,
    refuse,
    refusing_rows,
    strict_in_flight,
    strict_request,
)


@pytest.mark.spec("RFL-01", "RFL-03", "RFL-04", "RFL-05")
@pytest.mark.parametrize("rc", REFUSED)
def test_a_refusal_is_written_on_its_request_and_generation(horde: Horde, rc: str) -> None:
    request_id, generation_id = strict_in_flight(horde)
    other_id = horde.submit()[1]["id"]

    message = refuse(horde, generation_id, rc)

    assert record_of(request_id) == (message, rc)
    assert refusal_of(generation_id) == rc
    assert record_of(other_id) == NO_RECORD


@pytest.mark.spec("RFL-03")
@pytest.mark.parametrize("length", [999, 1000, 1001, 5000])
def test_a_long_message_is_cut_to_1000_characters(horde: Horde, length: int) -> None:
    request_id, generation_id = strict_in_flight(horde)
    message = "é" * (length - 1) + "."

    fault_record.record_refusal(
        ChatSubmitInvalid(message), request_id=UUID(request_id), generation_id=UUID(generation_id)
    )

    assert record_of(request_id) == (message[:1000], INVALID)


def test_a_nul_character_that_a_message_quotes_is_replaced(horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(horde)

    status, body = horde.reply(generation_id, model_id="a\0b")

    assert (status, body["message"]) == (400, f"'model_id' is 'a\0b' and the job was assigned to '{MODEL}'.")
    assert record_of(request_id) == (f"'model_id' is 'a\ufffdb' and the job was assigned to '{MODEL}'.", MISMATCH)


@pytest.mark.spec("RFL-01", "RFL-02")
def test_the_record_is_committed_though_the_submit_is_refused(committed_horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)

    message = refuse(committed_horde, generation_id, NONCONFORMANT)

    with another_connection() as other:
        row = other.execute(
            "SELECT request.id::text, chat_fault_reason, chat_fault_rc, chat_refusal_rc"
            "  FROM waiting_prompts AS request JOIN processing_gens ON request_id = request.id"
        ).fetchone()
    assert row == (request_id, message, NONCONFORMANT, NONCONFORMANT)


@pytest.mark.spec("RFL-06", "RFL-24")
def test_a_later_refusal_of_the_same_job_replaces_it(horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(horde)

    for rc in (NONCONFORMANT, MISMATCH, INVALID, NONCONFORMANT):
        message = refuse(horde, generation_id, rc)

        assert record_of(request_id) == (message, rc)
        assert refusal_of(generation_id) == rc


@pytest.mark.spec("RFL-06")
def test_a_refusal_of_the_next_job_replaces_it(horde: Horde) -> None:
    request_id, first = strict_in_flight(horde)
    refuse(horde, first, NONCONFORMANT)
    horde.fault(first)
    second = next_try(horde)

    message = refuse(horde, second, INVALID)

    assert record_of(request_id) == (message, INVALID)
    assert (refusal_of(first), refusal_of(second)) == (NONCONFORMANT, INVALID)


@pytest.mark.spec("RFL-07", "RFL-11", "RFL-24")
def test_a_second_reply_succeeds_and_clears_nothing(horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(horde)
    message = refuse(horde, generation_id, NONCONFORMANT)

    status, body = horde.reply(generation_id, **CONFORMANT)

    assert (status, body["reward"] > 0) == (200, True)
    assert record_of(request_id) == (message, NONCONFORMANT)
    assert refusal_of(generation_id) == NONCONFORMANT
    shown = horde.status(request_id)[1]
    assert (shown["done"], shown["faulted"], len(shown["generations"])) == (True, False, 1)
    assert (shown["fault_reason"], shown["fault_rc"]) == NO_RECORD
    assert counters() == (0, 0, 0)


@pytest.mark.spec("RFL-08")
def test_a_record_that_cannot_be_written_is_logged_and_the_refusal_sent(
    committed_horde: Horde, caplog: pytest.LogCaptureFixture
) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)

    with refusing_rows("waiting_prompts", "chat_fault_rc IS NULL"):
        refuse(committed_horde, generation_id, NONCONFORMANT)

    [line] = [line for line in caplog.records if line.getMessage() == "a fault record was not written"]
    assert (line.levelname, str(vars(line)["generation_id"])) == ("ERROR", generation_id)
    assert record_of(request_id) == NO_RECORD
    assert refusal_of(generation_id) is None, "the record is written whole or not at all"
    assert committed_horde.reply(generation_id, **CONFORMANT)[0] == 200


@pytest.mark.spec("RFL-09", "SUB-27", "SUB-28")
@pytest.mark.parametrize(("ends_with", "answer"), [("a reply", "DuplicateGen"), ("a fault", "AbortedGen")])
@pytest.mark.parametrize("rc", REFUSED)
def test_nothing_is_written_of_a_job_that_is_not_pending(horde: Horde, ends_with: str, answer: str, rc: str) -> None:
    request_id, generation_id = strict_in_flight(horde)
    if ends_with == "a reply":
        horde.reply(generation_id, **CONFORMANT)
    else:
        horde.fault(generation_id)

    status, body = horde.reply(generation_id, **REFUSED[rc])

    assert (status, body["rc"]) == (400, answer)
    assert record_of(request_id) == NO_RECORD
    assert refusal_of(generation_id) is None


@pytest.mark.spec("RFL-09")
@pytest.mark.parametrize("end", ["faulted = true", "generation = ''"])
def test_nothing_is_written_of_a_job_that_ends_before_the_record(committed_horde: Horde, end: str) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)

    with behind_a_lock_on(request_id) as line:
        reply = line.join(lambda: committed_horde.reply(generation_id, **REFUSED[INVALID]))
        one_value(f"UPDATE processing_gens SET {end} RETURNING 1")

    assert (reply.result()[0], reply.result()[1]["rc"]) == (400, INVALID)
    assert record_of(request_id) == NO_RECORD
    assert refusal_of(generation_id) is None


@pytest.mark.spec("SUB-27", "SUB-28", "SUB-29")
def test_a_reply_after_the_abort_is_not_looked_at_and_the_job_counts_as_dropped(horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(horde)
    lapse()
    assert faults.abort_lapsed(now=clock.now()) == 1

    for rc in REFUSED:
        assert horde.reply(generation_id, **REFUSED[rc])[1]["rc"] == "AbortedGen"

    assert counters() == (1, 1, 0)
    assert record_of(request_id) == NO_RECORD


@pytest.mark.spec("RFL-25")
def test_a_text_job_has_no_record(horde: Horde) -> None:
    request_id = horde.queued_text(models=[MODEL])
    generation_id = horde.pop_text()[1]["id"]

    status, body = horde.reply(generation_id)

    assert (status, body["rc"]) == (400, INVALID)
    assert record_of(request_id) == NO_RECORD
    assert refusal_of(generation_id) is None


class TestTheStatus:
    """It says why a request was faulted, once it is."""

    @pytest.mark.spec("RFL-10", "RFL-11")
    @pytest.mark.parametrize("rc", REFUSED)
    def test_shows_the_last_refusal_once_the_request_is_faulted(self, horde: Horde, rc: str) -> None:
        request_id = strict_request(horde)
        shown = []
        for _ in range(3):
            generation_id = next_try(horde)
            message = refuse(horde, generation_id, rc)
            shown.append(horde.status(request_id)[1])
            horde.fault(generation_id)
            shown.append(horde.status(request_id)[1])

        assert [(body["faulted"], body["fault_reason"], body["fault_rc"]) for body in shown] == [
            *[(False, None, None)] * 5,
            (True, message, rc),
        ]

    @pytest.mark.spec("RFL-12")
    def test_shows_nothing_where_no_reply_was_refused(self, horde: Horde) -> None:
        request_id = strict_request(horde)
        for _ in range(3):
            horde.fault(next_try(horde), fault_reason="a reason of tomorrow")

        body = horde.status(request_id)[1]

        assert (body["faulted"], body["fault_reason"], body["fault_rc"]) == (True, None, None)

    @pytest.mark.spec("RFL-13", "SIG-06")
    def test_and_the_signal_say_the_same(self, committed_horde: Horde) -> None:
        request_id = strict_request(committed_horde)
        with listening(request_id) as heard:
            for _ in range(3):
                generation_id = next_try(committed_horde)
                message = refuse(committed_horde, generation_id, NONCONFORMANT)
                committed_horde.fault(generation_id)

        details = {"fault_reason": message, "fault_rc": NONCONFORMANT}
        assert heard == [{"id": request_id, "event": "faulted", "generations": 0} | details]
        body = committed_horde.status(request_id)[1]
        assert {key: body[key] for key in details} == details


class TestAFakeJob:
    """It is nobody's try: what becomes of it leaves the request as it is."""

    @pytest.mark.parametrize("rc", REFUSED)
    def test_that_is_refused_leaves_the_request_without_a_record(self, horde: Horde, rc: str) -> None:
        request_id = strict_request(horde)
        pause_workers()
        generation_id = next_try(horde)

        refuse(horde, generation_id, rc)

        assert one_value("SELECT fake FROM processing_gens") is True
        assert record_of(request_id) == NO_RECORD

    @pytest.mark.parametrize("way", ["its worker's fault", "the sweep"])
    def test_that_is_faulted_does_not_count_towards_the_limit(self, horde: Horde, way: str) -> None:
        request_id = strict_request(horde)
        for number in range(4):
            name = f"worker {number}"
            horde.pop(name=name, models=["own/model"], model_id="own/model")
            pause_workers()
            generation_id = next_try(horde, name=name)
            if way == "the sweep":
                lapse()
                assert faults.abort_lapsed(now=clock.now()) == 1
            else:
                assert horde.fault(generation_id, fault_reason="generation_error")[0] == 200

        shown = horde.status(request_id)[1]
        assert (shown["waiting"], shown["restarted"], shown["faulted"]) == (1, 0, False)
        assert one_value("SELECT faulted_jobs FROM waiting_prompts") == 0
        assert record_of(request_id) == NO_RECORD
        assert count_rows("queue_rows") == {"queue_rows": 1}
