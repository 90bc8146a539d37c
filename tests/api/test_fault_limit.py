"""A request with more than two jobs given up is faulted with the third, at once, whoever gave them up."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from billing_app.selectors import ledger
from hordechat.infra import clock
from requests_app.selectors import progress
from requests_app.services import expiry, faults
from tests.horde import MODEL, Answer, Horde, count_rows, one_value
from tests.races import slow_commits, slow_writes, watching
from tests.signals import listening, looking_when_woken
from tests.tries import (
    CONFORMANT,
    NONCONFORMANT,
    counters,
    lapse,
    next_try,
    record_of,
    refuse,
    strict_in_flight,
    strict_request,
)


@dataclass(frozen=True)
class Family:
    """How a request of one family is asked, taken, given back and looked at."""

    queue: Callable[[Horde], str]
    take: Callable[[Horde], str]
    give_back: Callable[[Horde, str], Answer]
    look: Callable[[Horde, str], Answer]


FAMILIES = {
    "chat": Family(
        queue=lambda horde: horde.queued(),
        take=lambda horde: str(horde.pop()[1]["id"]),
        give_back=lambda horde, generation_id: horde.fault(generation_id),
        look=lambda horde, request_id: horde.status(request_id),
    ),
    "text": Family(
        queue=lambda horde: horde.queued_text(models=[MODEL]),
        take=lambda horde: str(horde.pop_text()[1]["id"]),
        give_back=lambda horde, generation_id: horde.reply_text(generation_id, "", state="faulted"),
        look=lambda horde, request_id: horde.text_status(request_id),
    ),
}
either_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def sweep(horde: Horde, generation_id: str) -> Answer:
    """Let a lease lapse and the sweep come."""
    lapse(generation_id)
    assert faults.abort_lapsed(now=clock.now()) == 1
    return 200, {"reward": 0}


def standing(body: dict[str, Any]) -> tuple[int, int, int, bool, bool]:
    return body["waiting"], body["processing"], body["restarted"], body["faulted"], body["done"]


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


class TestItsSignal:
    """A chat request's is published with the fault that is one too many, after its commit; a text request has none."""

    @pytest.mark.spec("FLW-03", "SIG-16")
    def test_is_published_once_by_the_fault_that_crosses_the_limit(self, committed_horde: Horde) -> None:
        request_id = committed_horde.queued()
        heard_by_fault = []

        for _ in range(3):
            generation_id = committed_horde.pop()[1]["id"]
            with listening(request_id) as heard:
                committed_horde.fault(generation_id)
                committed_horde.fault(generation_id)
            heard_by_fault.append(heard)

        assert heard_by_fault == [[], [], [{"id": request_id, "event": "faulted", "generations": 0}]]

    @pytest.mark.spec("SIG-14", "FLW-05")
    def test_is_published_once_by_the_sweep_that_crosses_the_limit(self, committed_horde: Horde) -> None:
        request_id = committed_horde.queued()
        heard_by_sweep = []

        for _ in range(3):
            committed_horde.pop()
            lapse()
            with listening(request_id) as heard:
                assert [faults.abort_lapsed(now=clock.now()) for _ in range(2)] == [1, 0]
            heard_by_sweep.append(heard)

        assert heard_by_sweep == [[], [], [{"id": request_id, "event": "faulted", "generations": 0}]]

    @pytest.mark.spec("SIG-14", "SIG-16")
    @pytest.mark.parametrize("lapses", [False, True])
    def test_is_heard_when_the_fault_is_committed(self, committed_horde: Horde, lapses: bool) -> None:
        request_id = committed_horde.queued()
        for _ in range(2):
            committed_horde.fault(committed_horde.pop()[1]["id"])
        generation_id = committed_horde.pop()[1]["id"]
        look = "SELECT faulted, n, (SELECT count(*) FROM queue_rows) FROM waiting_prompts"

        with slow_commits("waiting_prompts"), looking_when_woken(request_id, look) as heard:
            (sweep if lapses else FAMILIES["chat"].give_back)(committed_horde, generation_id)

        assert heard == [("faulted", True, 0, 0)]

    @pytest.mark.spec("SIG-16")
    def test_is_not_published_again_by_the_jobs_still_in_flight(self, committed_horde: Horde) -> None:
        request_id, generation_id = committed_horde.in_flight()
        one_value("UPDATE waiting_prompts SET faulted = true RETURNING 1")

        with listening(request_id) as heard:
            committed_horde.fault(generation_id)

        assert heard == []
        assert one_value("SELECT n FROM waiting_prompts") == 0
        assert count_rows("queue_rows") == {"queue_rows": 0}

    @pytest.mark.spec("SIG-08")
    def test_of_an_expiry_says_why_to_who_finds_the_request_gone(self, committed_horde: Horde) -> None:
        request_id, generation_id = strict_in_flight(committed_horde)
        message = refuse(committed_horde, generation_id, NONCONFORMANT)

        with listening(request_id) as heard:
            assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

        assert committed_horde.status(request_id)[0] == 404
        details = {"fault_reason": message, "fault_rc": NONCONFORMANT}
        assert heard == [{"id": request_id, "event": "faulted", "generations": 0} | details]

    @pytest.mark.spec("SIG-24")
    @pytest.mark.parametrize(
        "end",
        ["its replies", "faults", "lapsed leases", "a cancel", "its expiry"],
    )
    def test_is_none_of_a_text_request_whatever_happens_to_it(self, committed_horde: Horde, end: str) -> None:
        horde = committed_horde
        request_id = horde.queued_text(params={"n": 3}, models=[MODEL])
        with listening(request_id) as heard:
            ids = horde.pop_text(amount=3)[1]["ids"]
            for generation_id in ids:
                if end == "its replies":
                    assert horde.reply_text(generation_id)[0] == 200
                elif end == "faults":
                    assert horde.reply_text(generation_id, "", state="faulted")[0] == 200
            if end == "lapsed leases":
                lapse()
                assert faults.abort_lapsed(now=clock.now()) == 3
            elif end == "a cancel":
                assert horde.call("DELETE", f"generate/text/status/{request_id}")[0] == 200
            elif end == "its expiry":
                assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

        assert heard == []
        if end not in {"a cancel", "its expiry"}:
            assert horde.text_status(request_id)[1]["done"] is True


class TestWhatIsHeldForIt:
    """It is free again with the fault; what is in flight may still be submitted, and is paid."""

    @pytest.fixture(autouse=True)
    def low_ceiling(self, settings: Settings) -> None:
        """Let 100 tokens be free, whatever the load."""
        settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 100, "free_output_floor": 50})

    def held(self, horde: Horde) -> Decimal:
        return Decimal(
            one_value("SELECT held_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", [horde.requester.id])
        )

    @pytest.mark.spec("FLW-29")
    @pytest.mark.parametrize("lapses", [False, True])
    def test_is_given_back_whole_where_nothing_was_charged(self, horde: Horde, lapses: bool) -> None:
        horde.queued(max_tokens=512)
        assert self.held(horde) > 0
        for _ in range(2):
            horde.fault(horde.pop()[1]["id"])
        assert self.held(horde) > 0, "below the limit it is still held"

        (sweep if lapses else FAMILIES["chat"].give_back)(horde, horde.pop()[1]["id"])

        assert self.held(horde) == 0
        assert one_value("SELECT (resolution, settled_kudos)::text FROM holds") == "(voided,0.00)"
        assert horde.kudos(horde.requester) == 9_999
        assert ledger.reconcile().is_sound

    @pytest.mark.spec("FLW-29")
    @pytest.mark.parametrize("lapses", [False, True])
    def test_is_settled_by_what_was_charged_and_the_rest_given_back(self, horde: Horde, lapses: bool) -> None:
        take: dict[str, Any] = {"max_length": 1024, "amount": 9}
        horde.pop_text(**take)
        request_id = horde.queued_text(params={"n": 6, "max_length": 512}, models=[MODEL])
        before = self.held(horde)
        ids = horde.pop_text(**take)[1]["ids"]
        horde.reply_text(ids[0], "x" * 400)
        charged = Decimal(str(horde.text_status(request_id)[1]["kudos"])) - 1
        assert 0 < charged < before == self.held(horde)

        lapse(*ids[1:4])
        if lapses:
            assert faults.abort_lapsed(now=clock.now()) == 3
        else:
            for generation_id in ids[1:4]:
                horde.reply_text(generation_id, "", state="faulted")

        assert self.held(horde) == 0
        assert one_value("SELECT resolution FROM holds") == "settled"
        assert one_value("SELECT settled_kudos FROM holds") == charged
        assert horde.kudos(horde.requester) == 9_999 - charged
        assert ledger.reconcile().is_sound

    @pytest.mark.spec("FLW-29", "FLW-18", "FLW-06")
    @pytest.mark.parametrize("tokens", [80, 512])
    def test_does_not_keep_a_job_in_flight_from_being_stored_and_paid(self, horde: Horde, tokens: int) -> None:
        take: dict[str, Any] = {"max_length": 1024, "amount": 9}
        horde.pop_text(**take)
        request_id = horde.queued_text(params={"n": 5, "max_length": tokens}, models=[MODEL])
        ids = horde.pop_text(**take)[1]["ids"]
        for generation_id in ids[:3]:
            horde.reply_text(generation_id, "", state="faulted")
        free = horde.kudos(horde.requester)
        assert standing(horde.text_status(request_id)[1]) == (0, 2, 3, True, True)

        status, body = horde.reply_text(ids[3], "x" * 300)

        reward = Decimal(str(body["reward"]))
        assert (status, reward > 0) == (200, True)
        assert horde.kudos(horde.owner) == reward
        assert horde.kudos(horde.requester) == free - reward - 1
        shown = horde.text_status(request_id)[1]
        assert standing(shown) == (0, 1, 3, True, True)
        assert (shown["finished"], len(shown["generations"])) == (1, 1)
        assert horde.reply_text(ids[4], "", state="faulted")[0] == 200
        assert standing(horde.text_status(request_id)[1]) == (0, 0, 4, True, True)
        assert count_rows("queue_rows") == {"queue_rows": 0}
        assert self.held(horde) == 0
        assert ledger.reconcile().is_sound

    @pytest.mark.spec("FLW-29")
    def test_ends_without_a_word_of_done_when_the_last_job_in_flight_is_stored(self, committed_horde: Horde) -> None:
        request_id, generation_id = committed_horde.in_flight()
        one_value("UPDATE waiting_prompts SET faulted = true, faulted_jobs = 3 RETURNING 1")

        with listening(request_id) as heard:
            assert committed_horde.reply(generation_id)[0] == 200

        assert heard == [{"id": request_id, "event": "generation", "generations": 1}]
        shown = committed_horde.status(request_id)[1]
        assert (shown["faulted"], shown["finished"]) == (True, 1)


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


class TestDone:
    """What counts as the end of a request, and what as its result."""

    @pytest.mark.spec("FLW-18")
    def test_a_job_given_back_is_no_result(self, horde: Horde) -> None:
        request_id = horde.queued_text(params={"n": 2}, models=[MODEL])
        first, second = horde.pop_text(amount=2)[1]["ids"]
        horde.reply_text(first, "a text")
        horde.reply_text(second, "half a text", state="faulted")

        shown = horde.text_status(request_id)[1]

        assert (shown["finished"], shown["done"], shown["waiting"]) == (1, False, 1)
        assert [generation["text"] for generation in shown["generations"]] == ["a text"]
        horde.reply_text(horde.pop_text()[1]["id"])
        shown = horde.text_status(request_id)[1]
        assert (shown["finished"], shown["done"], shown["restarted"]) == (2, True, 1)

    @pytest.mark.spec("FLW-18")
    def test_a_job_given_back_is_not_announced_as_a_result(self, committed_horde: Horde) -> None:
        request_id = strict_request(committed_horde)
        committed_horde.fault(next_try(committed_horde))

        with listening(request_id) as heard:
            committed_horde.reply(next_try(committed_horde), **CONFORMANT)

        assert [(message["event"], message["generations"]) for message in heard] == [("generation", 1), ("done", 1)]

    @pytest.mark.spec("FLW-13")
    @pytest.mark.parametrize("in_flight", [False, True])
    def test_a_cancelled_request_may_be_done_without_a_result(self, horde: Horde, in_flight: bool) -> None:
        request_id = horde.queued()
        generation_id = horde.pop()[1]["id"] if in_flight else None
        horde.cancel(request_id)
        if generation_id is not None:
            assert horde.status(request_id)[1]["done"] is False
            horde.fault(generation_id)

        shown = horde.status(request_id)[1]

        assert (shown["done"], shown["faulted"], shown["generations"]) == (True, False, [])
        assert (shown["finished"], shown["waiting"], shown["processing"]) == (0, 0, 0)

    @pytest.mark.spec("FLW-25")
    @pytest.mark.parametrize("state", ["waiting", "in flight", "given back"])
    def test_is_judged_by_one_statement(self, horde: Horde, state: str) -> None:
        request_id = horde.queued()
        if state != "waiting":
            generation_id = horde.pop()[1]["id"]
            if state == "given back":
                horde.fault(generation_id)
        waiting = one_value("SELECT id FROM waiting_prompts")

        with CaptureQueriesContext(connection) as captured:
            found = progress.find(request_id=waiting)
            assert found is not None
            assert found.is_done is False

        assert len(captured) == 1
        assert horde.status(request_id)[1]["done"] is False

    @pytest.mark.spec("SUB-33")
    @pytest.mark.parametrize("content", ["", None])
    def test_a_reply_of_calls_alone_is_a_result_everywhere(self, committed_horde: Horde, content: str | None) -> None:
        horde = committed_horde
        tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        able: dict[str, Any] = {"chat_features": ["tools", "prompt_overflow_refused"]}
        horde.pop(**able)
        request_id = horde.submit(tools=[tool])[1]["id"]
        generation_id = horde.pop(**able)[1]["id"]
        message = {"role": "assistant", "content": content, "tool_calls": [call]}

        with listening(request_id) as heard:
            assert horde.reply(generation_id, message=message, finish_reason="tool_calls")[0] == 200

        assert one_value("SELECT generation FROM processing_gens") == ""
        assert [(each["event"], each["generations"]) for each in heard] == [("generation", 1), ("done", 1)]
        shown = horde.status(request_id)[1]
        assert (shown["finished"], shown["processing"], shown["done"]) == (1, 0, True)
        assert shown["generations"][0]["message"] == message
        assert horde.fault(generation_id)[1]["rc"] == "DuplicateGen"
        lapse()
        assert faults.abort_lapsed(now=clock.now()) == 0
        with listening(request_id) as heard:
            assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1
        assert heard == []


@pytest.mark.spec("FLW-20")
@either_family
def test_a_slot_leaves_the_queue_and_becomes_a_job_at_the_same_moment(committed_horde: Horde, family: Family) -> None:
    family.queue(committed_horde)
    look = """
        SELECT n, (SELECT count(*) FROM processing_gens), (SELECT count(*) FROM queue_rows)
          FROM waiting_prompts
    """

    with slow_writes("processing_gens", "waiting_prompts"), watching(look) as seen:
        assert family.take(committed_horde) != "None"

    assert seen == {(1, 0, 1), (0, 1, 0)}


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
