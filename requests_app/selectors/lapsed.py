"""What is overdue: generations past their lease, requests and holds past their expiry."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hordechat.infra import sql

BACKLOG_BOUND = 1000
"""A backlog is counted up to here; beyond, more is not worse news."""


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

    def by_task(self) -> dict[str, int]:
        """Return the counts under the names of the tasks that work them off."""
        return {
            "abort_lapsed_leases": self.lapsed_leases,
            "expire_requests": self.expired_requests,
            "lapse_holds": self.overdue_holds,
        }


def list_generations(*, now: datetime, limit: int) -> list[LapsedGeneration]:
    """Return the generations that are overdue longest."""
    return sql.fetch_all(sql.load(__file__, "lapsed_generations.sql"), {"now": now, "limit": limit}, LapsedGeneration)


def get_backlog(*, now: datetime) -> Backlog:
    """Return how much overdue work there is, in one bounded statement."""
    backlog = sql.find_one(sql.load(__file__, "backlog.sql"), {"now": now, "bound": BACKLOG_BOUND}, Backlog)
    assert backlog is not None, "backlog.sql always returns one row"
    return backlog
