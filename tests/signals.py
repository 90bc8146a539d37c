"""What is published about a request, as a client hears it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, LiteralString

import orjson
import redis
from django.conf import settings
from redis.client import PubSub

from tests.races import PATIENCE_SECONDS, another_connection

SILENCE_SECONDS = 0.2


@contextmanager
def _subscription(request_id: str, *, database: int) -> Iterator[PubSub]:
    client = redis.Redis.from_url(settings.HORDE.redis_database(database), decode_responses=True)
    subscription = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call] # the package's
    subscription.subscribe(f"horde:chat:{request_id}")
    subscription.get_message(timeout=1)
    try:
        yield subscription
    finally:
        subscription.close()
        client.close()


@contextmanager
def listening(request_id: str, *, database: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Collect what is published about a request while the block runs."""
    heard: list[dict[str, Any]] = []
    with _subscription(request_id, database=database) as subscription:
        yield heard
        while (message := subscription.get_message(timeout=SILENCE_SECONDS)) is not None:
            heard.append(orjson.loads(message["data"]))


@contextmanager
def looking_when_woken(request_id: str, look: LiteralString) -> Iterator[list[tuple[Any, ...]]]:
    """Collect each event published while the block runs, with what another connection sees as soon as it hears it."""
    heard: list[tuple[Any, ...]] = []
    is_over = threading.Event()

    def listen(subscription: PubSub) -> None:
        with another_connection() as other:
            while True:
                is_last = is_over.is_set()
                message = subscription.get_message(timeout=SILENCE_SECONDS)
                if message is not None:
                    row = other.execute(look).fetchone()
                    heard.append((orjson.loads(message["data"])["event"], *(row or ())))
                elif is_last:
                    return

    with _subscription(request_id, database=0) as subscription, ThreadPoolExecutor(1) as pool:
        listener = pool.submit(listen, subscription)
        try:
            yield heard
        finally:
            is_over.set()
            listener.result(timeout=PATIENCE_SECONDS)
