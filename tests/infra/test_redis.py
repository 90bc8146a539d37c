"""Redis may be slow, broken or gone: the caller goes on, and loses next to no time over it."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis as client_library
from django.conf import settings
from prometheus_client import REGISTRY

from hordechat.infra import beat_marks, redis
from hordechat.local import valkey
from hordechat.local.valkey import Valkey
from hordechat.settings.env import Environment

BUSY_SECONDS = 10
"""What milliseconds may become on a busy machine."""


def point_at(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process use the Redis at `url`."""
    environment: Environment = settings.HORDE.model_copy(update={"redis_url": url})
    monkeypatch.setattr(settings, "HORDE", environment)
    redis._client.cache_clear()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Valkey]:
    with valkey.running(tmp_path / "valkey") as running:
        point_at(running.url, monkeypatch)
        yield running
    redis._client.cache_clear()


@pytest.fixture
def silent_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Listen, accept and never answer, as a Redis that hangs does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        port: int = listener.getsockname()[1]
        point_at(f"redis://127.0.0.1:{port}", monkeypatch)
        yield port
    redis._client.cache_clear()


def failures(operation: str) -> float:
    return REGISTRY.get_sample_value("horde_best_effort_failures_total", {"operation": operation}) or 0


def ping() -> object:
    return redis.marks().ping()


def test_returns_what_redis_answers(server: Valkey) -> None:
    assert redis.best_effort("ping", ping) is True
    assert redis.best_effort("mark", lambda: redis.marks().set("a", "b")) is True
    assert redis.best_effort("look", lambda: redis.marks().get("a")) == "b"
    assert redis.best_effort("look elsewhere", lambda: redis.chat_signals().get("a")) is None


def test_a_dead_redis_is_asked_once_and_then_left_alone(server: Valkey, caplog: pytest.LogCaptureFixture) -> None:
    redis.best_effort("dead", ping)
    server.stop()
    attempts: list[int] = []

    def attempt() -> object:
        attempts.append(1)
        return ping()

    started_at = time.monotonic()
    answers = [redis.best_effort("dead", attempt) for _ in range(3)]
    seconds = time.monotonic() - started_at

    assert answers == [None] * 3
    assert len(attempts) == 1
    assert seconds < BUSY_SECONDS
    assert failures("dead") == 3
    assert [record.getMessage() for record in caplog.records] == ["dead failed: Redis ConnectionError"]


def test_a_redis_that_hangs_costs_one_time_out(silent_port: int) -> None:
    attempts: list[int] = []

    def attempt() -> object:
        attempts.append(1)
        return ping()

    started_at = time.monotonic()
    answers = [redis.best_effort("silent", attempt) for _ in range(3)]
    seconds = time.monotonic() - started_at

    assert answers == [None] * 3
    assert len(attempts) == 1
    assert settings.HORDE.redis_timeout_milliseconds == 50
    assert 0.04 < seconds < BUSY_SECONDS


def test_many_threads_on_a_dead_redis_lose_one_time_out_each_at_most(silent_port: int) -> None:
    waited: list[float] = []

    def use() -> None:
        started_at = time.monotonic()
        for _ in range(5):
            redis.best_effort("silent for many", ping)
        waited.append(time.monotonic() - started_at)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(waited) == 8
    assert max(waited) < BUSY_SECONDS


def test_a_redis_that_comes_back_is_used_again(server: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    server.stop()
    assert redis.best_effort("back", ping) is None
    server.start()

    # However long the start took, from here on it is left alone as after a failure.
    monkeypatch.setattr(redis, "OPEN_SECONDS", 1.0)
    redis.breaker.record_failure()
    assert redis.best_effort("back", ping) is None
    time.sleep(1.1)

    assert redis.best_effort("back", ping) is True
    assert not redis.breaker.is_open


def test_an_answer_of_the_wrong_kind_is_a_failure_of_its_own(server: Valkey) -> None:
    redis.marks().set("text", "a")

    assert redis.best_effort("wrong kind", lambda: redis.marks().hget("text", "b")) is None
    assert failures("wrong kind") == 1
    assert redis.best_effort("look", lambda: redis.marks().get("text")) == "a", "what answers is not left alone"


def test_a_fault_of_our_own_code_is_not_swallowed(server: Valkey) -> None:
    def wrong() -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError):
        redis.best_effort("ours", wrong)
    assert not redis.breaker.is_open


def test_each_role_has_the_logical_database_of_its_name(server: Valkey) -> None:
    redis.marks().set("role", "marks")
    redis.address_timeouts().set("role", "time-outs")
    redis.chat_signals().set("role", "signals")

    found = {
        number: client_library.Redis.from_url(f"{server.url}?db={number}", decode_responses=True).get("role")
        for number in (0, 1, 5, 7)
    }

    assert found == {0: "marks", 1: None, 5: "time-outs", 7: "signals"}


def test_a_beat_task_that_ends_well_leaves_its_mark(server: Valkey) -> None:
    with beat_marks.recorded("sweep"):
        pass

    known = beat_marks.seconds_since_last_runs(("sweep", "other"), now=time.time() + 10)

    assert known["other"] is None
    assert known["sweep"] is not None
    assert 10 <= known["sweep"] < 20
    assert REGISTRY.get_sample_value("horde_beat_runs_total", {"task": "sweep", "outcome": "done"}) == 1


def test_a_beat_task_that_fails_leaves_none_and_its_error_passes_through(server: Valkey) -> None:
    with pytest.raises(KeyError), beat_marks.recorded("broken"):
        raise KeyError("ours")

    assert beat_marks.seconds_since_last_runs(("broken",), now=time.time()) == {"broken": None}
    assert REGISTRY.get_sample_value("horde_beat_runs_total", {"task": "broken", "outcome": "failed"}) == 1


def test_a_beat_task_runs_without_redis(server: Valkey) -> None:
    server.stop()

    with beat_marks.recorded("lonely"):
        pass

    assert beat_marks.seconds_since_last_runs(("lonely",), now=time.time()) == {"lonely": None}


def test_a_clock_that_went_back_shows_no_negative_age(server: Valkey) -> None:
    with beat_marks.recorded("early"):
        pass

    assert beat_marks.seconds_since_last_runs(("early",), now=time.time() - 100) == {"early": 0.0}
