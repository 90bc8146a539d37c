"""Give jobs up: a fault and the return of its slot, or the fault of its request, are one transaction (FLW-19)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from hordechat.contract.limits import FAULTED_GENERATIONS_LIMIT
from hordechat.contract.vocabulary import CompletionEvent
from hordechat.errors import ErrorCode
from hordechat.infra import advisory_locks, batches, metrics, sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.rules.length_buckets import bucket_of
from requests_app.selectors import lapsed, progress
from requests_app.selectors.lapsed import LapsedGeneration
from requests_app.selectors.progress import RequestProgress
from requests_app.services import completion_signal, upfront
from workers_app.rules import speed

SWEEP_BATCH_ROWS = 200

MAX_ABORTED_JOBS = 20
"""Of a worker within an hour; with one more it is put into maintenance (text-path 5.6)."""
TOO_MANY_ABORTS = (
    "This worker gave up more than 20 jobs within an hour and was put into maintenance. Declare smaller limits or "
    "fewer threads, and end the maintenance when it keeps up."
)


@dataclass(frozen=True, kw_only=True)
class GivenBack:
    """The row of `give_back.sql`."""

    generation_id: UUID
    request_id: UUID
    is_chat: bool
    may_end_hold: bool
    """Whether kudos were held for the request."""
    is_cancelled: bool
    ends_request: bool
    """Whether this fault was one too many: the request is faulted with it."""
    fault_reason: str | None
    fault_rc: str | None


@retry_on_conflict
def give_back(*, request_id: UUID, generation_id: UUID, now: datetime) -> bool:
    """Fault one pending generation, and return its slot or fault its request; return whether this call did it."""
    with transaction.atomic(durable=True):
        return bool(_give_back_all([request_id], [generation_id], now=now, lapsed_at=None))


def abort_all_lapsed(*, now: datetime) -> int:
    """Abort every lapsed lease, batch by batch within a run's time, and return how many they were."""
    return batches.run_all(lambda: abort_lapsed(now=now), full=SWEEP_BATCH_ROWS)


@retry_on_conflict
def abort_lapsed(*, now: datetime, limit: int = SWEEP_BATCH_ROWS) -> int:
    """Fault one batch of generations whose lease has lapsed, as if their workers had, and say how many they were.

    Two runs at once do the work of one: the second finds the batch's advisory lock taken and does nothing.
    """
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock("abort lapsed leases"):
            return 0
        found = {generation.id: generation for generation in lapsed.list_generations(now=now, limit=limit)}
        aborted = _give_back_all(
            sorted({generation.request_id for generation in found.values()}), list(found), now=now, lapsed_at=now
        )
    _count_aborts([found[row.generation_id] for row in aborted])
    return len(aborted)


def _count_aborts(aborted: Collection[LapsedGeneration]) -> None:
    for generation in aborted:
        trust = str(generation.is_owner_trusted).lower()
        metrics.STALE_ABORTS.labels(trust, str(generation.is_chat).lower()).inc()
        if generation.is_over_capacity:
            metrics.GATE_SHADOW_OUTCOMES.labels(trust, bucket_of(generation.max_length), "aborted").inc()


def _give_back_all(
    request_ids: list[UUID], generation_ids: list[UUID], *, now: datetime, lapsed_at: datetime | None
) -> list[GivenBack]:
    given_back = sql.fetch_all(
        sql.load(__file__, "give_back.sql"),
        {
            "request_ids": request_ids,
            "generation_ids": generation_ids,
            "now": now,
            "hour_ago": now - timedelta(hours=1),
            "most_faults": FAULTED_GENERATIONS_LIMIT,
            "nonconformant_rc": ErrorCode.CHAT_SUBMIT_NONCONFORMANT.value,
            "most_aborts": MAX_ABORTED_JOBS,
            "most_suspicions": speed.MAX_SUSPICIONS,
            "maintenance_message": TOO_MANY_ABORTS,
            "lapsed_at": lapsed_at,
        },
        GivenBack,
    )
    _settle_requests(given_back, now=now)
    return given_back


def _settle_requests(given_back: Sequence[GivenBack], *, now: datetime) -> None:
    """Do what follows for requests: those that end here leave the queue and say so; no hold outlives its request."""
    requests = {
        row.request_id: row for row in given_back if row.ends_request or (row.is_cancelled and row.may_end_hold)
    }
    if ended := [row.request_id for row in requests.values() if row.ends_request]:
        sql.execute(sql.load(__file__, "dequeue.sql"), {"request_ids": ended})
    done: dict[UUID, RequestProgress] = {}
    for row in requests.values():
        found = progress.find(request_id=row.request_id)
        assert found is not None, "the request's row is locked by this transaction"
        if row.ends_request and row.is_chat:
            completion_signal.publish_after_commit(
                row.request_id,
                CompletionEvent.FAULTED,
                generations=found.stored,
                fault_reason=row.fault_reason,
                fault_rc=row.fault_rc,
            )
        if found.is_done:
            done[row.request_id] = found
    # Accounts come last in the lock order, all of them at once.
    upfront.release_all(done, now=now)
