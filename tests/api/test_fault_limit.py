"""A request with more than two jobs given up is faulted with the third, at once, whoever gave them up."""

from datetime import timedelta

import pytest
from django.db import connection

from hordechat.infra import clock
from requests_app.services import expiry, faults
from tests.horde import MODEL, Horde, count_rows, one_value
from tests.signals import listening
from tests.tries import (
    FAMILIES,
    NONCONFORMANT,
    Family,
    counters,
    lapse,
    next_try,
    record_of,
    refuse,
    standing,
    strict_request,
    sweep,
)

either_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


WAYS: dict[str, list[bool]] = {
    "three faults": [False, False, False],
    "three lapsed leases": [True, True, True],
    "the sweep after two faults": [False, False, True],
    "a fault after two lapsed leases": [True, True, False],
}
"""For each try of a request, whether its lease lapses."""


@pytest.mark.spec("FLW-01", "FLW-02", "FLW-05", "FLW-06", "FLW-26")
@either_family
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_third_job_given_up_faults_its_request(horde: Horde, family: Family, way: list[bool]) -> None:
    request_id = family.queue(horde)
    shown = []

    for lapses in way:
        generation_id = family.take(horde)
        assert (sweep if lapses else family.give_back)(horde, generation_id) == (200, {"reward": 0})
        shown.append(standing(family.look(horde, request_id)[1]))

    assert shown == [(1, 0, 1, False, False), (1, 0, 2, False, False), (0, 0, 3, True, True)]
    assert one_value("SELECT (n, faulted, faulted_jobs)::text FROM waiting_prompts") == "(0,t,3)"
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert family.take(horde) == "None", "nothing of it is handed out any more"


@pytest.mark.spec("FLW-01")
@either_family
def test_what_others_wait_for_is_left_alone(horde: Horde, family: Family) -> None:
    family.queue(horde)
    for _ in range(2):
        family.give_back(horde, family.take(horde))
    generation_id = family.take(horde)
    other_id = family.queue(horde)

    family.give_back(horde, generation_id)

    assert standing(family.look(horde, other_id)[1]) == (1, 0, 0, False, False)
    assert one_value("SELECT array_agg(DISTINCT request_id::text) FROM queue_rows") == [other_id]


@pytest.mark.spec("SIG-20", "FLW-06")
@either_family
def test_a_faulted_request_can_be_read_until_it_expires(horde: Horde, family: Family) -> None:
    request_id = family.queue(horde)
    for _ in range(3):
        family.give_back(horde, family.take(horde))
    expires_at = one_value("SELECT expiry FROM waiting_prompts")

    assert expiry.expire_batch(now=expires_at - timedelta(seconds=1)) == 0
    status, body = family.look(horde, request_id)
    assert (status, body["faulted"], body["is_possible"]) == (200, True, False)

    assert expiry.expire_batch(now=expires_at) == 1
    assert family.look(horde, request_id)[0] == 404


def test_a_cancel_of_a_faulted_request_changes_nothing(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    for _ in range(3):
        committed_horde.fault(committed_horde.pop()[1]["id"])

    with listening(request_id) as heard:
        status, body = committed_horde.cancel(request_id)

    assert (status, body["faulted"]) == (200, True)
    assert one_value("SELECT cancelled_at IS NULL FROM waiting_prompts") is True
    assert heard == []


def test_a_cancelled_request_is_not_faulted_by_the_jobs_given_up_after(horde: Horde) -> None:
    request_id = horde.queued_text(params={"n": 4}, models=[MODEL])
    ids = horde.pop_text(amount=4)[1]["ids"]
    horde.call("DELETE", f"generate/text/status/{request_id}")

    for generation_id in ids:
        horde.reply_text(generation_id, "", state="faulted")

    assert standing(horde.text_status(request_id)[1]) == (0, 0, 4, False, True)
    assert count_rows("queue_rows") == {"queue_rows": 0}


class TestABatch:
    """Of a text request several jobs may be given up in one statement."""

    def take(self, horde: Horde, *, slots: int, taken: int) -> tuple[str, list[str]]:
        request_id = horde.queued_text(params={"n": slots}, models=[MODEL])
        ids: list[str] = horde.pop_text(amount=taken)[1]["ids"]
        assert len(ids) == taken
        return request_id, ids

    @pytest.mark.spec("FLW-05", "FLW-26")
    @pytest.mark.parametrize(
        ("slots", "lapsing", "expected"),
        [
            pytest.param(5, 2, (2, 3, 2, False, False), id="two lapse: both slots come back"),
            pytest.param(5, 3, (0, 2, 3, True, True), id="three lapse: none comes back"),
            pytest.param(5, 5, (0, 0, 5, True, True), id="all lapse: none comes back"),
        ],
    )
    def test_that_crosses_the_limit_gives_no_slot_back(
        self, horde: Horde, slots: int, lapsing: int, expected: tuple[int, int, int, bool, bool]
    ) -> None:
        request_id, ids = self.take(horde, slots=slots, taken=slots)
        lapse(*ids[:lapsing])

        assert faults.abort_lapsed(now=clock.now()) == lapsing

        assert standing(horde.text_status(request_id)[1]) == expected
        is_faulted = expected[3]
        assert one_value("SELECT (n, faulted, faulted_jobs)::text FROM waiting_prompts") == (
            f"({expected[0]},{'t' if is_faulted else 'f'},{lapsing})"
        )
        assert count_rows("queue_rows") == {"queue_rows": 0 if is_faulted else 1}

    @pytest.mark.spec("FLW-05")
    def test_that_crosses_the_limit_takes_what_waits_out_of_the_queue(self, horde: Horde) -> None:
        request_id, ids = self.take(horde, slots=9, taken=5)
        horde.reply_text(ids[0], "", state="faulted")
        horde.reply_text(ids[1])
        assert standing(horde.text_status(request_id)[1]) == (5, 3, 1, False, False)
        lapse(*ids[2:])

        assert faults.abort_lapsed(now=clock.now()) == 3

        assert standing(horde.text_status(request_id)[1]) == (0, 0, 4, True, True)
        assert count_rows("queue_rows") == {"queue_rows": 0}
        assert horde.pop_text()[1]["id"] is None
        assert counters("text worker") == (4, 4, 0)

    @pytest.mark.spec("FLW-05", "SIG-14")
    def test_faults_each_request_by_its_own_count(self, committed_horde: Horde) -> None:
        horde = committed_horde
        horde.pop()
        first, second, third = (horde.submit()[1]["id"] for _ in range(3))
        one_value("UPDATE waiting_prompts SET faulted_jobs = CASE id WHEN %s THEN 1 ELSE 2 END RETURNING 1", [third])
        for _ in range(3):
            assert horde.pop()[1]["id"] is not None
        lapse()

        with listening(first) as of_first, listening(second) as of_second, listening(third) as of_third:
            assert faults.abort_lapsed(now=clock.now()) == 3

        assert [message["event"] for message in of_first] == ["faulted"]
        assert [message["event"] for message in of_second] == ["faulted"]
        assert of_third == []
        assert standing(horde.status(third)[1]) == (1, 0, 1, False, False)


@pytest.mark.spec("FLW-27")
@either_family
def test_generations_that_were_faulted_as_cancelled_do_not_count(horde: Horde, family: Family) -> None:
    request_id = family.queue(horde)
    for _ in range(3):
        family.take(horde)
        one_value("UPDATE processing_gens SET faulted = true, cancelled = true RETURNING 1")
        one_value("UPDATE waiting_prompts SET n = 1 RETURNING 1")
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO queue_rows (request_id, model, is_chat, feature_mask, order_key, created, max_length,"
                " max_context_length, user_id) SELECT id, %s, is_chat, feature_mask, order_key, created, max_length,"
                " max_context_length, user_id FROM waiting_prompts",
                [MODEL],
            )

    for faulted in (False, False, True):
        family.give_back(horde, family.take(horde))
        assert family.look(horde, request_id)[1]["faulted"] is faulted


def test_a_request_whose_model_fails_each_time_says_so(horde: Horde) -> None:
    request_id = strict_request(horde)
    for _ in range(3):
        generation_id = next_try(horde)
        message = refuse(horde, generation_id, NONCONFORMANT)
        horde.fault(generation_id, fault_reason="reply_refused")

    shown = horde.status(request_id)[1]
    assert (shown["faulted"], shown["fault_reason"], shown["fault_rc"]) == (True, message, NONCONFORMANT)
    assert record_of(request_id) == (message, NONCONFORMANT)
    assert counters() == (0, 0, 3)
