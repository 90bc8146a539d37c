"""Whether this node can work: its database, its Redis, and how the beat tasks keep up."""

import logging
from dataclasses import dataclass
from datetime import datetime

from django.db import Error

from hordechat.infra import beat_marks, metrics, redis
from requests_app.selectors import lapsed
from requests_app.selectors.lapsed import Backlog

logger = logging.getLogger(__name__)
BEAT_TASKS = (
    "abort_lapsed_leases",
    "expire_requests",
    "lapse_holds",
    "refresh_model_reference",
    "roll_up_statistics",
    "prune_shared_keys",
    "prune_revoked_keys",
)


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """What `/healthz/ready` reports. Only the database decides; without Redis or beat the node still serves."""

    backlog: Backlog | None
    """None when the database cannot be reached."""
    is_redis_reachable: bool
    seconds_since_last_runs: dict[str, float | None]

    @property
    def is_ready(self) -> bool:
        """Whether requests can be served."""
        return self.backlog is not None

    def as_json(self) -> dict[str, object]:
        """Return the report."""
        counts = {} if self.backlog is None else self.backlog.by_task()
        return {
            "status": "ok" if self.is_ready else "unavailable",
            "database": "ok" if self.is_ready else "unreachable",
            "redis": "ok" if self.is_redis_reachable else "unreachable",
            "beat": {
                task: {"seconds_since_last_run": self.seconds_since_last_runs[task], "backlog": counts.get(task)}
                for task in BEAT_TASKS
            },
        }


def get(*, now: datetime) -> Readiness:
    """Look at everything this node depends on, and set the instruments of it.

    Each look is bounded in time, but that a database which neither answers nor refuses is waited for.
    """
    is_redis_reachable = bool(redis.best_effort("readiness", lambda: redis.marks().ping()))
    runs = beat_marks.seconds_since_last_runs(BEAT_TASKS, now=now.timestamp())
    for task, seconds in runs.items():
        if seconds is not None:
            metrics.BEAT_LAST_RUN.labels(task).set(now.timestamp() - seconds)
    return Readiness(
        backlog=_find_backlog(now=now), is_redis_reachable=is_redis_reachable, seconds_since_last_runs=runs
    )


def _find_backlog(*, now: datetime) -> Backlog | None:
    try:
        backlog = lapsed.get_backlog(now=now)
    except Error:
        logger.exception("the database cannot be used")
        return None
    for task, count in backlog.by_task().items():
        metrics.BEAT_BACKLOG.labels(task).set(count)
    return backlog
