"""What is overdue: generations past their lease, requests and holds past their expiry, what is to sum up or forget."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from billing_app.rules.keys import KEPT_AFTER_END
from hordechat.infra import sql

BACKLOG_BOUND = 1000
"""A backlog is counted up to here; beyond, more is not worse news."""

ROLL_UP_SECONDS = 60
"""How old a finished generation may be before a run of the roll-up has missed it."""


@dataclass(frozen=True, kw_only=True)
class LapsedGeneration:
    """A pending generation whose lease is over."""

    id: UUID
    request_id: UUID
    is_chat: bool
    max_length: int
    is_over_capacity: bool
    is_owner_trusted: bool


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """How much overdue work waits for each beat task, counted up to `BACKLOG_BOUND`."""

    lapsed_leases: int
    expired_requests: int
    overdue_holds: int
    finished_generations: int
    expired_keys: int
    revoked_keys: int

    def by_task(self) -> dict[str, int]:
        """Return the counts under the names of the tasks that work them off."""
        return {
            "abort_lapsed_leases": self.lapsed_leases,
            "expire_requests": self.expired_requests,
            "lapse_holds": self.overdue_holds,
            "roll_up_statistics": self.finished_generations,
            "prune_shared_keys": self.expired_keys,
            "prune_revoked_keys": self.revoked_keys,
        }


def list_generations(*, now: datetime, limit: int) -> list[LapsedGeneration]:
    """Return the generations that are overdue longest."""
    return sql.fetch_all(sql.load(__file__, "lapsed_generations.sql"), {"now": now, "limit": limit}, LapsedGeneration)


def get_backlog(*, now: datetime) -> Backlog:
    """Return how much overdue work there is, in one bounded statement."""
    moments = {
        "now": now,
        "finished_before": now - timedelta(seconds=ROLL_UP_SECONDS),
        "keys_ended_before": now - KEPT_AFTER_END,
    }
    backlog = sql.find_one(sql.load(__file__, "backlog.sql"), {**moments, "bound": BACKLOG_BOUND}, Backlog)
    assert backlog is not None, "backlog.sql always returns one row"
    return backlog
