"""Give jobs up: a fault and the return of its slot are one transaction (FLW-19)."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from hordechat.infra import advisory_locks, batches, metrics, sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.selectors import lapsed, progress
from requests_app.services import upfront

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
    user_id: int
    may_end_hold: bool


@retry_on_conflict
def give_back(*, request_id: UUID, generation_id: UUID, now: datetime) -> bool:
    """Fault one pending generation and return its slot; return whether this call did it."""
    with transaction.atomic(durable=True):
        return bool(_give_back([request_id], [generation_id], now=now, lapsed_at=None))


def abort_all_lapsed(*, now: datetime) -> int:
    """Abort every lapsed lease, batch by batch within a run's time, and return how many they were."""
    return batches.run_all(lambda: abort_lapsed(now=now), full=SWEEP_BATCH_ROWS)


@retry_on_conflict
def abort_lapsed(*, now: datetime, limit: int = SWEEP_BATCH_ROWS) -> int:
    """Fault one batch of generations whose lease has lapsed, return their slots, and say how many they were.

    Two runs at once do the work of one: the second finds the batch's advisory lock taken and does nothing.
    """
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock("abort lapsed leases"):
            return 0
        found = {generation.id: generation for generation in lapsed.list_generations(now=now, limit=limit)}
        aborted = _give_back(
            sorted({generation.request_id for generation in found.values()}), list(found), now=now, lapsed_at=now
        )
    counts = Counter((found[row.generation_id].is_owner_trusted, found[row.generation_id].is_chat) for row in aborted)
    for (is_trusted, is_chat), count in counts.items():
        metrics.STALE_ABORTS.labels(str(is_trusted).lower(), str(is_chat).lower()).inc(count)
    return len(aborted)


def _give_back(
    request_ids: list[UUID], generation_ids: list[UUID], *, now: datetime, lapsed_at: datetime | None
) -> list[GivenBack]:
    given_back = sql.fetch_all(
        sql.load(__file__, "give_back.sql"),
        {
            "request_ids": request_ids,
            "generation_ids": generation_ids,
            "now": now,
            "hour_ago": now - timedelta(hours=1),
            "most_aborts": MAX_ABORTED_JOBS,
            "maintenance_message": TOO_MANY_ABORTS,
            "lapsed_at": lapsed_at,
        },
        GivenBack,
    )
    # By user, as their accounts were made: accounts come last and by ascending id in the lock order.
    for _, ended_id in sorted({(row.user_id, row.request_id) for row in given_back if row.may_end_hold}):
        _end_hold(ended_id, now=now)
    return given_back


def _end_hold(request_id: UUID, *, now: datetime) -> None:
    """End the hold of a cancelled request when this was the last it waited for; its row is locked."""
    found = progress.find(request_id=request_id)
    assert found is not None, "the request's row is locked by this transaction"
    if found.is_done:
        upfront.release(request_id, spending=found, now=now)
