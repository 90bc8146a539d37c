"""Redis clients by role, with short time-outs and a circuit breaker; Redis is never the truth here.

Everything the project does in Redis may fail: the caller goes on, the failure is logged and counted.
"""

import logging
import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from hordechat.infra.metrics import BEST_EFFORT_FAILURES
from hordechat.settings.env import REDIS_ADDRESS_TIMEOUT_DATABASE, REDIS_CACHE_DATABASE, REDIS_CHAT_SIGNAL_DATABASE

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

OPEN_SECONDS = 1.0
"""How long Redis is left alone after a failure, so that a dead one costs a call one time-out and not one a use."""


class CircuitBreaker:
    """Remembers the last failure of this process; a race between threads costs one more time-out at most."""

    def __init__(self) -> None:
        self._closed_again_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether Redis failed a moment ago and should be left alone."""
        return time.monotonic() < self._closed_again_at

    def record_failure(self) -> None:
        """Leave Redis alone for a while."""
        self._closed_again_at = time.monotonic() + OPEN_SECONDS

    def reset(self) -> None:
        """Try Redis again at the next use."""
        self._closed_again_at = 0.0


breaker = CircuitBreaker()


@cache
def _client(database: int) -> "redis.Redis":
    timeout_seconds = settings.HORDE.redis_timeout_milliseconds / 1000
    return redis.Redis.from_url(
        settings.HORDE.redis_database(database),
        socket_timeout=timeout_seconds,
        socket_connect_timeout=timeout_seconds,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
    )


def chat_signals() -> "redis.Redis":
    """Return the client of chat leases, streams and completion signals (logical database 7, SIG-02)."""
    return _client(REDIS_CHAT_SIGNAL_DATABASE)


def marks() -> "redis.Redis":
    """Return the client of small rebuildable marks, such as a beat task's last run (logical database 0)."""
    return _client(REDIS_CACHE_DATABASE)


def address_timeouts() -> "redis.Redis":
    """Return the client of the time-outs of addresses (logical database 5), which `address_timeouts` owns."""
    return _client(REDIS_ADDRESS_TIMEOUT_DATABASE)


def best_effort(operation: str, call: Callable[[], Result]) -> Result | None:
    """Do something in Redis that nobody can afford to wait for or to miss badly.

    Returns what the call returned, or None when Redis failed, now or a moment ago; log and metrics name the operation.
    """
    if breaker.is_open:
        BEST_EFFORT_FAILURES.labels(operation).inc()
        return None
    try:
        return call()
    except (redis.RedisError, OSError) as error:
        # A Redis that answers with a refusal is there: what it refuses to one use it may do for the next.
        if not isinstance(error, redis.ResponseError):
            breaker.record_failure()
        BEST_EFFORT_FAILURES.labels(operation).inc()
        logger.warning("%s failed: Redis %s", operation, type(error).__name__)
        return None
