"""Completion signals go out after the commit, once, without text; without Redis everything else goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import orjson
import pytest
import redis as redis_client
from django.conf import settings

from hordechat.infra import clock, redis
from requests_app.services import expiry
from tests.horde import Horde, one_value


@contextmanager
def listening(request_id: str, *, database: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Collect what is published about a request while the block runs."""
    client = redis_client.Redis.from_url(settings.HORDE.redis_database(database), decode_responses=True)
    subscription = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call] # the package's
    subscription.subscribe(f"horde:chat:{request_id}")
    subscription.get_message(timeout=1)
    heard: list[dict[str, Any]] = []
    try:
        yield heard
        while (message := subscription.get_message(timeout=0.2)) is not None:
            heard.append(orjson.loads(message["data"]))
    finally:
        subscription.close()
        client.close()


@pytest.mark.spec("SIG-01", "SIG-03", "SIG-04", "SIG-05", "SIG-09", "SIG-10", "SIG-11")
def test_announces_a_generation_and_then_the_end(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with listening(request_id) as heard:
        committed_horde.reply(generation_id)
        committed_horde.reply(generation_id)

    assert heard == [
        {"id": request_id, "event": "generation", "generations": 1},
        {"id": request_id, "event": "done", "generations": 1},
    ]


@pytest.mark.spec("SIG-12", "SIG-25")
def test_announces_a_cancel_once(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()

    with listening(request_id) as heard:
        committed_horde.cancel(request_id)
        committed_horde.cancel(request_id)

    assert heard == [{"id": request_id, "event": "cancelled", "generations": 0}]


@pytest.mark.spec("SIG-15", "SIG-07", "SIG-17", "SIG-18")
def test_announces_an_expiry_once_the_request_is_gone(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    later = clock.now() + timedelta(hours=1)

    with listening(request_id) as heard:
        assert expiry.expire_batch(now=later) == 1
        assert expiry.expire_batch(now=later) == 0

    assert heard == [{"id": request_id, "event": "faulted", "generations": 0}]
    assert committed_horde.status(request_id)[0] == 404


@pytest.mark.spec("SIG-06", "SIG-19")
def test_carries_the_fault_details_of_an_expired_request(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    one_value("UPDATE waiting_prompts SET chat_fault_reason = 'Why.', chat_fault_rc = 'ChatWorkerFault' RETURNING 1")

    with listening(request_id) as heard:
        expiry.expire_batch(now=clock.now() + timedelta(hours=1))

    assert heard[0] | {"fault_reason": "Why.", "fault_rc": "ChatWorkerFault"} == heard[0]


@pytest.mark.spec("SIG-27")
def test_says_nothing_when_a_finished_request_expires(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()
    committed_horde.reply(generation_id)

    with listening(request_id) as heard:
        assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

    assert heard == []


@pytest.mark.spec("SIG-02")
def test_publishes_on_logical_database_7() -> None:
    assert redis.chat_signals().connection_pool.connection_kwargs["db"] == 7
