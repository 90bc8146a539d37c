"""What counts as the end of a request, and what as its result."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hordechat.infra import clock
from requests_app.selectors import progress
from requests_app.services import expiry, faults
from tests.horde import MODEL, Horde, one_value
from tests.races import slow_writes, watching
from tests.signals import listening
from tests.tries import CONFORMANT, FAMILIES, Family, lapse, next_try, strict_request

either_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@pytest.mark.spec("FLW-18")
def test_a_job_given_back_is_no_result(horde: Horde) -> None:
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


@pytest.mark.spec("FLW-07", "FLW-18")
@either_family
def test_a_job_given_back_makes_up_for_no_result(horde: Horde, family: Family) -> None:
    request_id = family.queue(horde)
    family.give_back(horde, family.take(horde))
    waiting = one_value("UPDATE waiting_prompts SET n = 0 RETURNING id")

    found = progress.find(request_id=waiting)

    assert found is not None
    assert (found.stored, found.in_flight, found.is_done) == (0, 0, False)
    assert family.look(horde, request_id)[1]["done"] is False


@pytest.mark.spec("FLW-18")
def test_a_job_given_back_is_not_announced_as_a_result(committed_horde: Horde) -> None:
    request_id = strict_request(committed_horde)
    committed_horde.fault(next_try(committed_horde))

    with listening(request_id) as heard:
        committed_horde.reply(next_try(committed_horde), **CONFORMANT)

    assert [(message["event"], message["generations"]) for message in heard] == [("generation", 1), ("done", 1)]


@pytest.mark.spec("FLW-13")
@pytest.mark.parametrize("in_flight", [False, True])
def test_a_cancelled_request_may_be_done_without_a_result(horde: Horde, in_flight: bool) -> None:
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
def test_is_judged_by_one_statement(horde: Horde, state: str) -> None:
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
def test_a_reply_of_calls_alone_is_a_result_everywhere(committed_horde: Horde, content: str | None) -> None:
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
