"""When each beat task last ran: a mark in Redis, for `/healthz/ready` and metrics; losing it loses nothing."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hordechat.infra import redis
from hordechat.infra.metrics import BEAT_LAST_RUN, BEAT_RUNS

logger = logging.getLogger(__name__)
KEY = "horde:beat:last_runs"


@contextmanager
def recorded(task: str) -> Iterator[None]:
    """Run a beat task's work, and leave a mark when it ends well."""
    started_at = time.perf_counter()
    try:
        yield
    except BaseException:
        BEAT_RUNS.labels(task, "failed").inc()
        raise
    finished_at = time.time()
    BEAT_RUNS.labels(task, "done").inc()
    BEAT_LAST_RUN.labels(task).set(finished_at)
    redis.best_effort("beat mark", lambda: redis.marks().hset(KEY, task, str(finished_at)))
    milliseconds = round((time.perf_counter() - started_at) * 1000)
    logger.info("beat task done", extra={"task": task, "milliseconds": milliseconds})


def seconds_since_last_runs(tasks: Sequence[str], *, now: float) -> dict[str, float | None]:
    """Return for each task how long ago it last ended well, in seconds; None where no mark is known."""
    marks = redis.best_effort("beat marks", lambda: redis.marks().hmget(KEY, list(tasks))) or [None] * len(tasks)
    return {
        task: None if mark is None else round(max(0.0, now - float(mark)), 1)
        for task, mark in zip(tasks, marks, strict=True)
    }
