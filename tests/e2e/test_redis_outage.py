"""Redis freezes or goes away in the middle of the work: submits, faults and cancels go on as fast."""

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from hordechat.contract.limits import FAULTED_GENERATIONS_LIMIT
from hordechat.local import stack, valkey
from hordechat.local.valkey import Valkey
from tests import services
from tests.e2e.conftest import LiveHorde, make_live_person

pytestmark = pytest.mark.slow
ROUNDS = 12
SLOWER_SECONDS = 0.1
"""By how much a call may be slower without Redis."""
PATIENCE_SECONDS = 20


@contextmanager
def frozen(cache: Valkey) -> Iterator[None]:
    """Let Redis take connections and answer none."""
    os.kill(cache.child.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(cache.child.pid, signal.SIGCONT)


@contextmanager
def gone(cache: Valkey) -> Iterator[None]:
    """Let Redis be away."""
    cache.stop()
    try:
        yield
    finally:
        cache.start()


def rounds(live: LiveHorde) -> dict[str, float]:
    """Walk requests to their ends, and return what each kind of call usually takes, in seconds."""
    seconds: dict[str, list[float]] = {"submit": [], "reply": [], "fault": [], "cancel": []}

    def timed(name: str, call: Callable[[], tuple[int, object]], expected: int = 200) -> None:
        started = time.perf_counter()
        status, body = call()
        seconds[name].append(time.perf_counter() - started)
        assert status == expected, body

    for _ in range(ROUNDS):
        timed("submit", live.submit, 202)
        for _ in range(FAULTED_GENERATIONS_LIMIT + 1):
            job = live.pop()[1]["id"]
            timed("fault", lambda job=job: live.fault(job, fault_reason="generation_error"))  # type: ignore[misc]
        timed("submit", live.submit, 202)
        job = live.pop()[1]["id"]
        timed("reply", lambda job=job: live.reply(job))  # type: ignore[misc]
        request_id = live.submit()[1]["id"]
        timed("cancel", lambda request_id=request_id: live.cancel(request_id))  # type: ignore[misc]
        live.value("UPDATE workers SET aborted_jobs = 0 RETURNING 1")
    return {name: statistics.median(measured) for name, measured in seconds.items()}


def hears_signals_again(live: LiveHorde, cache: Valkey) -> bool:
    """Return whether a cancel is announced before long: a process leaves a dead Redis alone for a moment."""
    subscription = redis.Redis.from_url(cache.url).pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    subscription.psubscribe("horde:chat:*")
    subscription.get_message(timeout=1)
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        live.cancel(live.submit()[1]["id"])
        if subscription.get_message(timeout=0.5) is not None:
            return True
    return False


@pytest.mark.parametrize("outage", [frozen, gone])
def test_calls_go_on_as_fast_and_signals_come_back(
    tmp_path: Path, outage: Callable[[Valkey], "Iterator[None]"]
) -> None:
    url = services.clone_for("outage")
    try:
        with valkey.running(tmp_path / "valkey") as cache:
            environment = {"DATABASE_URL": url, "REDIS_URL": cache.url, "HORDE_LOG_LEVEL": "ERROR"}
            requester = make_live_person(environment, "requester", "--kudos", "1000000")
            owner = make_live_person(environment, "owner", "--trusted")
            with (
                stack.api(environment) as api,
                LiveHorde(requester=requester, owner=owner, api=api, environment=environment) as live,
            ):
                live.pop()
                rounds(live)  # warms every path up
                usual = rounds(live)
                with outage(cache):  # type: ignore[attr-defined]
                    without = rounds(live)

                slower = {name: round(without[name] - usual[name], 3) for name in usual}
                assert all(seconds < SLOWER_SECONDS for seconds in slower.values()), slower
                assert hears_signals_again(live, cache)
                assert live.reconcile()["sum"] == "0.00"
    finally:
        services.drop(url)
