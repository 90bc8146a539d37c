"""A refused reply is written down before its 400, and what it was refused for decides how its worker is counted."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from hordechat.contract.submit import ChatSubmitInvalid
from hordechat.infra import clock
from requests_app.services import fault_record, faults
from tests.horde import MODEL, Horde, count_rows, one_value
from tests.races import another_connection, behind_a_lock_on
from tests.signals import listening
from tests.tries import (
    ABLE,
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
    assert (line.levelname, vars(line)["generation"]) == ("ERROR", generation_id)
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

    @pytest.mark.spec("RFL-13")
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


DROPPED, MODELS_FAILURE = (1, 1, 0), (0, 0, 1)
COUNTED: list[tuple[Sequence[str], tuple[int, int, int]]] = [
    ([], DROPPED),
    ([INVALID], DROPPED),
    ([MISMATCH], DROPPED),
    ([NONCONFORMANT], MODELS_FAILURE),
    ([NONCONFORMANT, NONCONFORMANT], MODELS_FAILURE),
    ([INVALID, NONCONFORMANT], MODELS_FAILURE),
    ([NONCONFORMANT, INVALID], DROPPED),
]


class TestTheCountersOfItsWorker:
    """Aborted jobs of the hour, uncompleted jobs, nonconformant replies: by the last refusal, whoever ends the job."""

    @pytest.mark.spec("RFL-15", "RFL-16", "RFL-17", "RFL-18", "RFL-24")
    @pytest.mark.parametrize(("refusals", "expected"), COUNTED)
    def test_go_by_the_last_refusal_when_it_gives_the_job_back(
        self, horde: Horde, refusals: Sequence[str], expected: tuple[int, int, int]
    ) -> None:
        _, generation_id = strict_in_flight(horde)
        for rc in refusals:
            refuse(horde, generation_id, rc)
        assert counters() == (0, 0, 0), "a refusal alone counts nothing: the job is still the worker's"

        horde.fault(generation_id)

        assert counters() == expected

    @pytest.mark.spec("RFL-21")
    @pytest.mark.parametrize(("refusals", "expected"), COUNTED)
    def test_go_by_the_last_refusal_when_the_lease_lapses(
        self, horde: Horde, refusals: Sequence[str], expected: tuple[int, int, int]
    ) -> None:
        _, generation_id = strict_in_flight(horde)
        for rc in refusals:
            refuse(horde, generation_id, rc)
        lapse()

        assert faults.abort_lapsed(now=clock.now()) == 1

        assert counters() == expected

    @pytest.mark.spec("RFL-14")
    @pytest.mark.parametrize(
        "claim",
        [
            {"chat_refusal_rc": NONCONFORMANT},
            {"rc": NONCONFORMANT},
            {"fault_reason": NONCONFORMANT},
            {"fault_reason": "tool_violation"},
            {"fault_reason": "reply_refused"},
        ],
    )
    def test_do_not_go_by_what_a_worker_claims(self, horde: Horde, claim: dict[str, str]) -> None:
        _, generation_id = strict_in_flight(horde)

        assert horde.fault(generation_id, **claim)[0] == 200

        assert counters() == DROPPED

    @pytest.mark.spec("RFL-14")
    def test_do_not_go_by_another_job_of_the_request(self, horde: Horde) -> None:
        _, first = strict_in_flight(horde)
        refuse(horde, first, NONCONFORMANT)
        horde.fault(first)

        horde.fault(next_try(horde))

        assert counters() == (1, 1, 1)

    @pytest.mark.spec("RFL-26")
    def test_count_a_job_once_however_often_it_is_given_back(self, horde: Horde) -> None:
        _, generation_id = strict_in_flight(horde)
        refuse(horde, generation_id, NONCONFORMANT)

        assert horde.fault(generation_id)[0] == 200
        assert horde.fault(generation_id)[1]["rc"] == "AbortedGen"
        lapse()
        assert faults.abort_lapsed(now=clock.now()) == 0

        assert counters() == MODELS_FAILURE

    @pytest.mark.spec("RFL-20")
    @pytest.mark.parametrize("way", ["the worker's fault", "the sweep"])
    def test_stand_for_jobs_that_earn_nothing(self, horde: Horde, way: str) -> None:
        _, generation_id = strict_in_flight(horde)
        before = count_rows("transfers", "holds")
        refuse(horde, generation_id, NONCONFORMANT)

        if way == "the worker's fault":
            assert horde.fault(generation_id) == (200, {"reward": 0})
        else:
            lapse()
            assert faults.abort_lapsed(now=clock.now()) == 1

        assert counters() == MODELS_FAILURE
        assert count_rows("transfers", "holds") == before
        assert horde.kudos(horde.owner) == 0
        assert one_value("SELECT kudos FROM processing_gens") == 0
        assert one_value("SELECT requests_fulfilled FROM workers") == 0

    @pytest.mark.spec("RFL-21")
    def test_take_both_kinds_of_several_workers_from_one_batch(self, horde: Horde) -> None:
        ids = []
        for name in ("worker one", "worker two"):
            for _ in range(3):
                horde.pop(name=name, **ABLE)
                strict_request(horde)
                ids.append(next_try(horde, name=name))
        for generation_id in (ids[0], ids[3], ids[4]):
            refuse(horde, generation_id, NONCONFORMANT)
        refuse(horde, ids[5], INVALID)
        lapse()

        assert faults.abort_lapsed(now=clock.now()) == 6

        assert counters("worker one") == (2, 2, 1)
        assert counters("worker two") == (1, 1, 2)

    @pytest.mark.spec("RFL-16", "RFL-21")
    def test_of_a_batch_of_nonconformant_replies_alone_leave_the_hour_where_it_was(self, horde: Horde) -> None:
        since = clock.now() - timedelta(hours=2)
        for _ in range(2):
            refuse(horde, strict_in_flight(horde)[1], NONCONFORMANT)
        stand(aborted_jobs=20, aborts_since=since)
        lapse()

        assert faults.abort_lapsed(now=clock.now()) == 2

        assert counters() == (20, 0, 2)
        assert one_value("SELECT aborts_since FROM workers") == since


def stand(*, aborted_jobs: int, aborts_since: datetime | None) -> None:
    """Let a worker have given up so many jobs since a moment."""
    one_value("UPDATE workers SET aborted_jobs = %s, aborts_since = %s RETURNING 1", [aborted_jobs, aborts_since])


def maintenance() -> bool:
    return bool(one_value("SELECT maintenance FROM workers"))


class TestTheThresholdOfMaintenance:
    """More than twenty dropped jobs within an hour; what the model failed is not among them."""

    def give_up(self, horde: Horde, *refusals: str) -> None:
        """Fault a job of a request of its own."""
        _, generation_id = strict_in_flight(horde)
        for rc in refusals:
            refuse(horde, generation_id, rc)
        assert horde.fault(generation_id)[0] == 200
        one_value("UPDATE waiting_prompts SET n = 0 RETURNING 1")
        one_value("DELETE FROM queue_rows RETURNING 1")

    @pytest.mark.spec("RFL-16", "RFL-17", "RFL-19")
    def test_is_the_twenty_first_dropped_job_with_any_number_of_nonconformant_ones_between(self, horde: Horde) -> None:
        one_value("UPDATE users SET concurrency = 100 WHERE id = %s RETURNING 1", [horde.requester.id])
        for number in range(20):
            self.give_up(horde, *[[], [INVALID], [MISMATCH], [NONCONFORMANT, INVALID]][number % 4])
            if number % 2:
                self.give_up(horde, NONCONFORMANT)
        assert (counters(), maintenance()) == ((20, 20, 10), False)

        self.give_up(horde, NONCONFORMANT)
        assert (counters(), maintenance()) == ((20, 20, 11), False)

        self.give_up(horde)
        assert (counters(), maintenance()) == ((0, 21, 11), True)
        assert one_value("SELECT suspicions FROM workers") == 1
        assert horde.submit()[1]["rc"] == "NoEligibleWorker"

    @pytest.mark.spec("RFL-19")
    def test_is_never_reached_by_a_request_no_model_can_meet(self, horde: Horde) -> None:
        for _ in range(8):
            request_id = strict_request(horde)
            for _ in range(3):
                generation_id = next_try(horde)
                refuse(horde, generation_id, NONCONFORMANT)
                horde.fault(generation_id)
            assert horde.status(request_id)[1]["faulted"] is True

        assert (counters(), maintenance()) == ((0, 0, 24), False)
        assert one_value("SELECT (suspicions, aborts_since, maintenance_message)::text FROM workers") == "(0,,)"

    @pytest.mark.spec("RFL-21", "RFL-19")
    def test_is_the_same_for_lapsed_leases(self, horde: Horde) -> None:
        horde.pop(**ABLE)
        stand(aborted_jobs=20, aborts_since=clock.now() - timedelta(minutes=5))
        _, refused = strict_in_flight(horde)
        _, dropped = strict_in_flight(horde)
        refuse(horde, refused, NONCONFORMANT)
        lapse(refused)
        assert faults.abort_lapsed(now=clock.now()) == 1
        assert (counters(), maintenance()) == ((20, 0, 1), False)

        lapse(dropped)
        assert faults.abort_lapsed(now=clock.now()) == 1

        assert (counters(), maintenance()) == ((0, 1, 1), True)

    @pytest.mark.parametrize(
        ("later", "expected", "is_in_maintenance"),
        [
            (timedelta(hours=1) - timedelta(microseconds=1), (0, 1, 0), True),
            (timedelta(hours=1), (1, 1, 0), False),
        ],
    )
    def test_counts_within_an_hour_of_the_first(
        self, horde: Horde, later: timedelta, expected: tuple[int, int, int], is_in_maintenance: bool
    ) -> None:
        request_id, generation_id = strict_in_flight(horde)
        first = clock.now()
        stand(aborted_jobs=20, aborts_since=first)

        assert faults.give_back(request_id=UUID(request_id), generation_id=UUID(generation_id), now=first + later)

        assert (counters(), maintenance()) == (expected, is_in_maintenance)
        assert one_value("SELECT aborts_since FROM workers") == (first if is_in_maintenance else first + later)

    @pytest.mark.spec("RFL-19")
    @pytest.mark.parametrize("hours", [0.5, 2])
    def test_has_an_hour_that_a_nonconformant_reply_neither_begins_nor_ends(self, horde: Horde, hours: float) -> None:
        _, generation_id = strict_in_flight(horde)
        refuse(horde, generation_id, NONCONFORMANT)
        since = clock.now() - timedelta(hours=hours)
        stand(aborted_jobs=20, aborts_since=since)

        horde.fault(generation_id)

        assert (counters(), maintenance()) == ((20, 0, 1), False)
        assert one_value("SELECT aborts_since FROM workers") == since


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
