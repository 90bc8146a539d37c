"""Which requests a worker could take now, in queue order."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hordechat.infra import sql
from workers_app.rules.check_in import CheckedInWorker

CANDIDATES_A_POP = 20
"""A pop loses one only to another pop or to a cancel, so few are enough."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A request that waits and fits a worker."""

    request_id: UUID


def list_for_chat(worker: CheckedInWorker, *, now: datetime) -> list[Candidate]:
    """Return what a chat worker could take, best first, read without locks."""
    declaration = worker.declaration
    return sql.fetch_all(
        sql.load(__file__, "chat_candidates.sql"),
        {
            "model": declaration.model_id,
            "max_length": declaration.max_length,
            "max_context_length": declaration.max_context_length,
            "feature_mask": worker.feature_mask,
            "own_only": worker.is_in_maintenance,
            "owner_id": worker.owner_id,
            "now": now,
            "limit": CANDIDATES_A_POP,
        },
        Candidate,
    )
