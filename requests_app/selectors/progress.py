"""How far a request has come, and what it has cost."""

from dataclasses import dataclass
from uuid import UUID

from hordechat.infra import sql
from requests_app.rules.progress import Progress, Spending


@dataclass(frozen=True, kw_only=True)
class RequestProgress(Progress, Spending):
    """The row of `progress.sql`."""


def find(*, request_id: UUID) -> RequestProgress | None:
    """Return a request's progress in one statement, or None when it is gone."""
    return sql.find_one(sql.load(__file__, "progress.sql"), {"request_id": request_id}, RequestProgress)
