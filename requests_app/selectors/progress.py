"""How far a request has come."""

from uuid import UUID

from hordechat.infra import sql
from requests_app.rules.progress import Progress


def find(*, request_id: UUID) -> Progress | None:
    """Return a request's progress in one statement, or None when it is gone."""
    return sql.find_one(sql.load(__file__, "progress.sql"), {"request_id": request_id}, Progress)
