"""Hand a worker the job that is its turn: candidates without locks, one atomic claim, the payload after the commit."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import orjson
from django.db import transaction

from hordechat.contract.limits import REQUEST_LIFE_SECONDS, TEXT_JOB_LEASE_SECONDS
from hordechat.contract.pop import PopBody
from hordechat.infra import metrics, sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.rules import payload
from requests_app.selectors import candidates
from workers_app.rules.check_in import CheckedInWorker
from workers_app.services import check_in


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """The row of `claim.sql`: a request of which this pop just took a slot."""

    request_id: UUID
    waiting: int
    created: datetime
    params: str
    messages: str
    extras: str | None
    max_length: int
    max_context_length: int


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A job handed to a worker."""

    generation_id: UUID
    model: str
    lease_seconds: int
    payload: Mapping[str, object]


def assign_next(*, api_key: str, pop: PopBody, address: str | None, now: datetime) -> Assignment | None:
    """Check the worker in and return its next job, None when nothing waits for it.

    Raises:
        InvalidApiKey, AnonymousForbiddenWorker, WrongCredentials: who pops.
        InvalidPayload, ChatDeclarationInvalid: what the pop declares.
    """
    worker = check_in.check_in(api_key=api_key, pop=pop, address=address, now=now)
    assignment = _assign_chat(worker, now=now) if worker.declaration.accepts_chat_jobs else None
    metrics.POPS.labels("idle" if assignment is None else "chat").inc()
    return assignment


def _assign_chat(worker: CheckedInWorker, *, now: datetime) -> Assignment | None:
    assert worker.declaration.model_id is not None, "a chat worker names its model"
    request_ids = [candidate.request_id for candidate in candidates.list_for_chat(worker, now=now)]
    if not request_ids:
        return None
    generation_id = uuid4()
    claimed = _claim(request_ids, generation_id=generation_id, worker=worker, now=now)
    if claimed is None:
        return None
    metrics.QUEUE_WAIT_SECONDS.labels("true").observe((now - claimed.created).total_seconds())
    # Built after the commit: a payload of 1 MiB must not be made under the request's lock.
    return Assignment(
        generation_id=generation_id,
        model=worker.declaration.model_id,
        lease_seconds=TEXT_JOB_LEASE_SECONDS,
        payload=payload.chat_payload(
            messages=orjson.loads(claimed.messages),
            params=orjson.loads(claimed.params),
            extras=None if claimed.extras is None else orjson.loads(claimed.extras),
            max_length=claimed.max_length,
            max_context_length=claimed.max_context_length,
        ),
    )


@retry_on_conflict
def _claim(request_ids: list[UUID], *, generation_id: UUID, worker: CheckedInWorker, now: datetime) -> Claimed | None:
    """Take one slot of the first request that has one, and make its generation, in one transaction (FLW-20)."""
    with transaction.atomic(durable=True):
        claimed = sql.find_one(
            sql.load(__file__, "claim.sql"),
            {"request_ids": request_ids, "now": now, "expiry": now + timedelta(seconds=REQUEST_LIFE_SECONDS)},
            Claimed,
        )
        if claimed is None:
            return None
        sql.execute(
            sql.load(__file__, "assign.sql"),
            {
                "id": generation_id,
                "request_id": claimed.request_id,
                "waiting": claimed.waiting,
                "worker_id": worker.id,
                "model": worker.declaration.model_id,
                "max_context_length": worker.declaration.max_context_length,
                "max_length": worker.declaration.max_length,
                "lease_seconds": TEXT_JOB_LEASE_SECONDS,
                "now": now,
                "deadline": now + timedelta(seconds=TEXT_JOB_LEASE_SECONDS),
            },
        )
    return claimed
