"""Which requests a worker could take now, in queue order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hordechat.infra import sql
from workers_app.rules.eligibility import RequestNeeds, WorkerSnapshot
from workers_app.rules.speed import longest_output

CANDIDATES_A_PAGE = 20
"""A pop loses one only to another pop, to a cancel or to a rule judged later, so few are enough."""

ANY_MODEL = ""
"""How the queue names a text request that takes any model."""


@dataclass(frozen=True, kw_only=True)
class Candidate(RequestNeeds):
    """The row of `candidates.sql`: a request that waits, with what the rules ask of it."""

    request_id: UUID


def list_page(
    worker: WorkerSnapshot, *, first_users: Sequence[int], now: datetime, apply_all: bool = False
) -> list[Candidate]:
    """Return what a worker could take, best first, read without locks.

    Without `apply_all` some rules are left to be judged one by one; with it what comes back passes all of them.
    """
    declared = worker.declaration
    return sql.fetch_all(
        sql.load(__file__, "candidates.sql"),
        {
            "takes_chat": declared.accepts_chat_jobs,
            "chat_model": declared.model_id,
            "covered_mask": worker.covered_mask,
            "chat_max_length": longest_output(worker.speed, declared=declared.max_length or 0),
            "chat_max_context_length": declared.max_context_length or 0,
            "tools_max_temperature": declared.tools_max_temperature,
            "text_models": [ANY_MODEL, *dict.fromkeys(worker.models)] if declared.accepts_prompt_jobs else [],
            "max_length": worker.max_length,
            "max_context_length": worker.max_context_length,
            "first_users": [worker.owner_id, *first_users],
            "own_only": worker.is_in_maintenance,
            "worker_id": worker.id,
            "apply_all": apply_all,
            "is_owner_trusted": worker.is_owner_trusted,
            "is_backend_validated": worker.is_backend_validated,
            "is_slow": worker.is_slow,
            "now": now,
            "limit": CANDIDATES_A_PAGE,
        },
        Candidate,
    )
