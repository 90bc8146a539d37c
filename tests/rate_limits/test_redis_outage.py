"""Without Redis nobody is counted, nobody is refused, and next to no time is lost."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from pytest_django.fixtures import Settings

from hordechat.infra import redis
from hordechat.local import valkey
from hordechat.local.valkey import Valkey
from tests.rate_limits.callers import Caller, Limits, count_in, patient, refused, taken

BUSY_SECONDS = 10
"""What milliseconds may become on a busy machine."""


@pytest.fixture
def server(tmp_path: Path, settings: Settings, limits: Limits) -> Iterator[Valkey]:
    with valkey.running(tmp_path / "valkey") as running:
        count_in(settings, patient(running.url))
        yield running


@pytest.fixture
def silent_redis(settings: Settings, limits: Limits) -> Iterator[None]:
    """Listen, accept and never answer, as a Redis that hangs does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        count_in(settings, f"redis://127.0.0.1:{listener.getsockname()[1]}/0")
        yield


def failures() -> float:
    return REGISTRY.get_sample_value("horde_best_effort_failures_total", {"operation": "rate limit"}) or 0


def test_a_redis_that_hangs_costs_one_call_its_time_outs(silent_redis: None) -> None:
    before = failures()
    durations = []
    statuses = []

    for _ in range(5):
        started_at = time.monotonic()
        answer = Caller().call()
        durations.append(time.monotonic() - started_at)
        statuses.append(answer.status_code)
        assert not answer.has_header("X-RateLimit-Limit")

    assert statuses == taken(5)
    assert 0.04 < durations[0] < BUSY_SECONDS
    assert sum(durations[1:]) < BUSY_SECONDS
    assert redis.breaker.is_open
    assert failures() == before + 15, "three budgets a call"


def test_a_redis_that_is_gone_refuses_nobody(server: Valkey, caplog: pytest.LogCaptureFixture) -> None:
    # A window can end between two calls, so more are made than two windows take.
    assert 429 in Caller().call_times(7)
    server.stop()
    started_at = time.monotonic()

    assert Caller().call_times(7) == taken(7)
    assert time.monotonic() - started_at < BUSY_SECONDS
    assert [record.getMessage() for record in caplog.records if record.name == redis.__name__] == [
        "rate limit failed: Redis ConnectionError"
    ]


def test_a_redis_that_comes_back_counts_again(server: Valkey, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    limits.set(HORDE_CHAT_REQUEST_90MIN_LIMIT_PER_IP="1/day")
    monkeypatch.setattr(redis, "OPEN_SECONDS", 0.1)
    server.stop()
    assert Caller().call_times(2) == taken(2)
    server.start()
    time.sleep(0.15)

    assert Caller().call_times(2) == [*taken(1), *refused(1)]
