"""Hand a worker the job that is its turn: candidates without locks, one atomic claim, the payload after the commit."""

import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from uuid import UUID, uuid4

import orjson
from django.db import transaction

from hordechat.contract.limits import REQUEST_LIFE_SECONDS, TEXT_JOB_LEASE_SECONDS
from hordechat.contract.pop import PopBody
from hordechat.infra import metrics, sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.rules import payload
from requests_app.rules.length_buckets import bucket_of
from requests_app.selectors import candidates
from requests_app.selectors.candidates import CANDIDATES_A_PAGE, Candidate
from workers_app.errors import WorkerMaintenance
from workers_app.rules import eligibility, speed
from workers_app.rules.check_in import CheckedInWorker
from workers_app.rules.eligibility import UNTOLD, WorkerSnapshot
from workers_app.services import check_in

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """The row of `claim.sql`: a request of which this pop just took slots."""

    request_id: UUID
    waiting: int
    taken: int
    is_chat: bool
    models: list[str]
    created: datetime
    prompt: str | None
    params: str
    messages: str | None
    extras: str | None
    max_length: int
    max_context_length: int


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Jobs of one request handed to a worker."""

    generation_ids: Sequence[UUID]
    is_chat: bool
    model: str
    lease_seconds: int
    payload: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Popped:
    """What a pop comes back with."""

    assignment: Assignment | None
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Candidates the worker may not take, counted by reason; none when there is a job."""
    messages: Sequence[Mapping[str, object]] = ()
    """What operators tell the worker."""


def assign_next(*, api_key: str, pop: PopBody, address: str | None, now: datetime) -> Popped:
    """Check the worker in and return its next job, none when nothing waits for it.

    Raises:
        InvalidApiKey, DeletedUser, WorkerFlaggedMaintenance, AnonymousForbiddenWorker, WrongCredentials: who pops.
        AddressTimedOut: the address is refused for a while.
        InvalidPayload, ChatDeclarationInvalid, BadRequest, InvalidPriorityUsername: what the pop declares.
        TooManyWorkers, TooManyWorkersTrusted, TooManySameAddresses: a new worker is one too many.
        WorkerMaintenance: the worker is in maintenance and its owner waits for nothing.
    """
    checked_in = check_in.check_in(api_key=api_key, pop=pop, address=address, now=now)
    worker = checked_in.snapshot
    skipped: Counter[str] = Counter()
    taken = _take(checked_in, amount=pop.amount, skipped=skipped, now=now)
    _count(worker, taken)
    if taken is None:
        if worker.is_in_maintenance:
            raise WorkerMaintenance(owners_words=checked_in.maintenance_message)
        return Popped(assignment=None, skipped=dict(skipped), messages=_messages_of(checked_in))
    return Popped(assignment=taken, messages=_messages_of(checked_in))


def _messages_of(checked_in: CheckedInWorker) -> list[dict[str, object]]:
    if checked_in.messages is None:
        return []
    return [
        {**told, "expiry": format_datetime(datetime.fromtimestamp(told["expiry"], tz=UTC), usegmt=True)}
        for told in orjson.loads(checked_in.messages)
    ]


def _take(checked_in: CheckedInWorker, *, amount: int, skipped: Counter[str], now: datetime) -> Assignment | None:
    """Claim the best candidate; by a second page, of every rule in SQL, where a full first one held nothing (Q2)."""
    worker = checked_in.snapshot
    # What it serves for its owner alone must not stand behind a page of what others wait for.
    is_for_owner_alone = worker.is_in_maintenance or checked_in.is_paused
    first_users = () if is_for_owner_alone else checked_in.first_users
    for apply_all in (False, True):
        page = candidates.list_page(worker, first_users=first_users, now=now, apply_all=apply_all)
        fitting = [each for each in page if _is_fitting(worker, each, skipped if not apply_all else Counter())]
        assignment = _assign_first(fitting, checked_in, amount=amount, now=now)
        if assignment is not None:
            return assignment
        if len(page) < CANDIDATES_A_PAGE:
            return None
    return None


def _is_fitting(worker: WorkerSnapshot, candidate: Candidate, skipped: Counter[str]) -> bool:
    refusal = eligibility.find_refusal(worker, candidate)
    if refusal is not None and refusal not in UNTOLD:
        skipped[refusal.value] += 1
    return refusal is None


def _assign_first(
    fitting: Sequence[Candidate], checked_in: CheckedInWorker, *, amount: int, now: datetime
) -> Assignment | None:
    """Assign the best that is still there; of a paused worker everything but its owner's requests is a fake."""
    worker = checked_in.snapshot
    real = [each for each in fitting if not checked_in.is_paused or each.user_id == worker.owner_id]
    if real and (assignment := _assign(real, worker=worker, amount=amount, now=now)) is not None:
        return assignment
    fakes = (_fake(each, worker=worker, now=now) for each in fitting if each not in real)
    return next((fake for fake in fakes if fake is not None), None)


def _fake(candidate: Candidate, *, worker: WorkerSnapshot, now: datetime) -> Assignment | None:
    """Hand out the payload of a request that goes on waiting for somebody else; the worker never sees it again."""
    generation_id = uuid4()
    model = _draw_model(candidate.models, is_chat=candidate.is_chat, worker=worker)
    row = sql.find_one(
        sql.load(__file__, "fake.sql"),
        {
            "id": generation_id,
            "request_id": candidate.request_id,
            "worker_id": worker.id,
            "model": model,
            **_assigned_columns(worker, is_chat=candidate.is_chat),
            "lease_seconds": TEXT_JOB_LEASE_SECONDS,
            "now": now,
            "deadline": now + timedelta(seconds=TEXT_JOB_LEASE_SECONDS),
        },
        Claimed,
    )
    if row is None:
        return None
    return Assignment(
        generation_ids=[generation_id],
        is_chat=row.is_chat,
        model=model,
        lease_seconds=TEXT_JOB_LEASE_SECONDS,
        payload=_payload_of(row),
    )


def _assigned_columns(worker: WorkerSnapshot, *, is_chat: bool) -> dict[str, object]:
    """Return what stands with a chat job of its worker's declaration, for good (POP-31..33, POP-35)."""
    declared = worker.declaration
    return {
        "assigned_model": declared.model_id if is_chat else None,
        "max_context_length": declared.max_context_length if is_chat else None,
        "max_length": declared.max_length if is_chat else None,
    }


def _assign(fitting: Sequence[Candidate], *, worker: WorkerSnapshot, amount: int, now: datetime) -> Assignment | None:
    ids = tuple(uuid4() for _ in range(amount))
    claimed = _claim([each.request_id for each in fitting], ids=ids, worker=worker, now=now)
    if claimed is None:
        return None
    row, model = claimed
    metrics.QUEUE_WAIT_SECONDS.labels(str(row.is_chat).lower()).observe((now - row.created).total_seconds())
    # Built after the commit: a payload of 1 MiB must not be made under the request's lock.
    return Assignment(
        generation_ids=ids[: row.taken],
        is_chat=row.is_chat,
        model=model,
        lease_seconds=TEXT_JOB_LEASE_SECONDS,
        payload=_payload_of(row),
    )


@retry_on_conflict
def _claim(
    request_ids: list[UUID], *, ids: tuple[UUID, ...], worker: WorkerSnapshot, now: datetime
) -> tuple[Claimed, str] | None:
    """Take slots of the first request that has one, and make their generations, in one transaction (FLW-20)."""
    with transaction.atomic(durable=True):
        claimed = sql.find_one(
            sql.load(__file__, "claim.sql"),
            {
                "request_ids": request_ids,
                "amount": len(ids),
                "now": now,
                "expiry": now + timedelta(seconds=REQUEST_LIFE_SECONDS),
            },
            Claimed,
        )
        if claimed is None:
            return None
        model = _draw_model(claimed.models, is_chat=claimed.is_chat, worker=worker)
        is_over_capacity = not claimed.is_chat and claimed.max_length > speed.lease_capacity(worker.speed)
        sql.execute(
            sql.load(__file__, "assign.sql"),
            {
                "ids": list(ids[: claimed.taken]),
                "request_id": claimed.request_id,
                "waiting": claimed.waiting,
                "worker_id": worker.id,
                "model": model,
                **_assigned_columns(worker, is_chat=claimed.is_chat),
                "lease_seconds": TEXT_JOB_LEASE_SECONDS,
                "fake": False,
                "over_capacity": is_over_capacity,
                "now": now,
                "deadline": now + timedelta(seconds=TEXT_JOB_LEASE_SECONDS),
            },
        )
    if is_over_capacity:
        _tell_over_capacity(claimed, ids[: claimed.taken], worker)
    return claimed, model


def _draw_model(models: Sequence[str], *, is_chat: bool, worker: WorkerSnapshot) -> str:
    """Return the model of the whole batch: of text one at random of those both sides name (text-path 4.4)."""
    if is_chat:
        assert worker.declaration.model_id is not None, "a chat worker names its model"
        return worker.declaration.model_id
    both = [model for model in dict.fromkeys(worker.models) if not models or model in models]
    return random.choice(both)  # noqa: S311 - a draw between equals, not a secret


def _tell_over_capacity(claimed: Claimed, ids: Sequence[UUID], worker: WorkerSnapshot) -> None:
    """Record what the gate of chat jobs would have withheld of text jobs (SPD-11, SPD-12, SPD-17)."""
    for generation_id in ids:
        metrics.GATE_SHADOW_ASSIGNMENTS.labels(
            str(worker.is_owner_trusted).lower(), bucket_of(claimed.max_length)
        ).inc()
        logger.info(
            "over capacity",
            extra={
                "generation_id": generation_id,
                "waiting_prompt_id": claimed.request_id,
                "worker_id": worker.id,
                "max_length": claimed.max_length,
                "capacity": round(speed.lease_capacity(worker.speed)),
                "speed": worker.speed,
            },
        )


def _payload_of(claimed: Claimed) -> dict[str, object]:
    params = orjson.loads(claimed.params)
    if claimed.is_chat:
        return payload.chat_payload(
            messages=orjson.loads(claimed.messages or "[]"),
            params=params,
            extras=None if claimed.extras is None else orjson.loads(claimed.extras),
            max_length=claimed.max_length,
            max_context_length=claimed.max_context_length,
        )
    return payload.text_payload(
        prompt=claimed.prompt or "",
        params=params,
        max_length=claimed.max_length,
        max_context_length=claimed.max_context_length,
    )


def _count(worker: WorkerSnapshot, assignment: Assignment | None) -> None:
    """Count the pop, and whether its worker's own speed caps the chat output it is offered (SPD-15, SPD-16, SPD-25)."""
    outcome = "idle" if assignment is None else "chat" if assignment.is_chat else "text"
    metrics.POPS.labels(outcome).inc()
    declared = worker.declaration.max_length
    if declared is not None and worker.speed is not None and speed.lease_capacity(worker.speed) < declared:
        metrics.LEASE_CAPACITY_LIMITED.labels("text").inc()
