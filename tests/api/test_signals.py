"""Completion signals go out after the commit, once, without text; without Redis everything else goes on."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from hordechat.infra import clock, redis
from requests_app.services import expiry
from tests.horde import Horde, count_rows, one_value
from tests.races import slow_commits
from tests.signals import listening, looking_when_woken


@pytest.mark.spec("SIG-01", "SIG-03", "SIG-04", "SIG-05", "SIG-09", "SIG-11")
def test_announces_a_generation_and_then_the_end(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with listening(request_id) as heard:
        committed_horde.reply(generation_id)
        committed_horde.reply(generation_id)

    assert heard == [
        {"id": request_id, "event": "generation", "generations": 1},
        {"id": request_id, "event": "done", "generations": 1},
    ]


@pytest.mark.spec("SIG-10")
def test_announces_a_generation_after_its_commit(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with (
        slow_commits("processing_gens"),
        looking_when_woken(request_id, "SELECT generation FROM processing_gens") as heard,
    ):
        committed_horde.reply(generation_id)

    assert heard == [("generation", "Hello yourself"), ("done", "Hello yourself")]


@pytest.mark.spec("SIG-12")
def test_announces_a_cancel_once(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()

    with listening(request_id) as heard:
        committed_horde.cancel(request_id)
        committed_horde.cancel(request_id)

    assert heard == [{"id": request_id, "event": "cancelled", "generations": 0}]


@pytest.mark.spec("SIG-15", "SIG-07", "SIG-17")
def test_announces_an_expiry_once_the_request_is_gone(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    later = clock.now() + timedelta(hours=1)

    with listening(request_id) as heard:
        assert expiry.expire_batch(now=later) == 1
        assert expiry.expire_batch(now=later) == 0

    assert heard == [{"id": request_id, "event": "faulted", "generations": 0}]
    assert committed_horde.status(request_id)[0] == 404


@pytest.mark.spec("SIG-18")
def test_announces_an_expiry_after_the_commit_of_its_deletion(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()

    with (
        slow_commits("waiting_prompts"),
        looking_when_woken(request_id, "SELECT count(*) FROM waiting_prompts") as heard,
    ):
        expiry.expire_batch(now=clock.now() + timedelta(hours=1))

    assert heard == [("faulted", 0)]


@pytest.mark.spec("SIG-06", "SIG-19")
def test_carries_the_fault_details_of_an_expired_request(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    one_value("UPDATE waiting_prompts SET chat_fault_reason = 'Why.', chat_fault_rc = 'ChatWorkerFault' RETURNING 1")

    with listening(request_id) as heard:
        expiry.expire_batch(now=clock.now() + timedelta(hours=1))

    assert heard[0] | {"fault_reason": "Why.", "fault_rc": "ChatWorkerFault"} == heard[0]


def answer(horde: Horde) -> str:
    request_id, generation_id = horde.in_flight()
    horde.reply(generation_id)
    return request_id


def cancel_waiting(horde: Horde) -> str:
    request_id = horde.queued()
    horde.cancel(request_id)
    return request_id


def cancel_in_flight(horde: Horde) -> str:
    request_id, _ = horde.in_flight()
    horde.cancel(request_id)
    return request_id


def fault_request(horde: Horde) -> str:
    request_id = horde.queued()
    one_value("UPDATE waiting_prompts SET faulted = true RETURNING 1")
    return request_id


@pytest.mark.spec("SIG-27")
@pytest.mark.parametrize(
    ("prepare", "events"),
    [
        pytest.param(answer, [], id="answered"),
        pytest.param(cancel_waiting, [], id="cancelled with nothing in flight"),
        pytest.param(fault_request, [], id="faulted earlier"),
        pytest.param(lambda horde: horde.queued(), ["faulted"], id="waiting"),
        pytest.param(lambda horde: horde.in_flight()[0], ["faulted"], id="in flight"),
        pytest.param(cancel_in_flight, ["faulted"], id="cancelled while in flight"),
    ],
)
def test_announces_the_expiry_of_a_request_that_was_not_done(
    committed_horde: Horde, prepare: Callable[[Horde], str], events: list[str]
) -> None:
    request_id = prepare(committed_horde)

    with listening(request_id) as heard:
        assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

    assert [message["event"] for message in heard] == events
    assert count_rows("waiting_prompts") == {"waiting_prompts": 0}


@pytest.mark.spec("SIG-02")
def test_publishes_on_logical_database_7() -> None:
    assert redis.chat_signals().connection_pool.connection_kwargs["db"] == 7
