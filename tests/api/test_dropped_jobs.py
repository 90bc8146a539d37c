"""A job given up counts against its worker, unless its last reply was refused for what the model failed to keep."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from hordechat.infra import clock
from requests_app.services import faults
from tests.horde import ABLE, Horde, count_rows, one_value
from tests.tries import (
    INVALID,
    MISMATCH,
    NONCONFORMANT,
    counters,
    lapse,
    next_try,
    refuse,
    strict_in_flight,
    strict_request,
)

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

    @pytest.mark.parametrize(
        ("is_trusted", "suspicions", "is_paused"), [(False, 4, True), (False, 3, False), (True, 4, False)]
    )
    def test_is_suspicious_and_the_fifth_suspicion_pauses_whom_nobody_trusts(
        self, horde: Horde, is_trusted: bool, suspicions: int, is_paused: bool
    ) -> None:
        one_value("UPDATE users SET is_trusted = %s WHERE id = %s RETURNING 1", [is_trusted, horde.owner.id])
        _, generation_id = strict_in_flight(horde)
        stand(aborted_jobs=20, aborts_since=clock.now())
        one_value("UPDATE workers SET suspicions = %s RETURNING 1", [suspicions])

        assert horde.fault(generation_id)[0] == 200

        assert maintenance() is True
        assert one_value("SELECT suspicions FROM workers") == suspicions + 1
        assert one_value("SELECT paused FROM workers") is is_paused

    def test_is_no_suspicion_when_the_job_is_one_of_twenty(self, horde: Horde) -> None:
        one_value("UPDATE users SET is_trusted = false WHERE id = %s RETURNING 1", [horde.owner.id])
        _, generation_id = strict_in_flight(horde)
        one_value("UPDATE workers SET suspicions = 7 RETURNING 1")

        horde.fault(generation_id)

        assert one_value("SELECT (suspicions, paused)::text FROM workers") == "(7,f)"
