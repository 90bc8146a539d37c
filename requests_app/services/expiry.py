"""Delete requests past their expiry, answered or not, active or never activated, and say so to who waits for one."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from hordechat.contract.vocabulary import CompletionEvent
from hordechat.infra import advisory_locks, batches, metrics, sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.rules.progress import Progress, Spending
from requests_app.services import completion_signal, upfront

EXPIRY_BATCH_ROWS = 500


@dataclass(frozen=True, kw_only=True)
class Locked:
    """The row of `lock_expired.sql`."""

    id: UUID


@dataclass(frozen=True, kw_only=True)
class Expired(Progress, Spending):
    """The row of `expire.sql`: a request that is gone."""

    id: UUID
    is_chat: bool
    fault_reason: str | None
    fault_rc: str | None


def expire_all(*, now: datetime) -> int:
    """Delete every request past its expiry, batch by batch within a run's time, and return how many they were."""
    return batches.run_all(lambda: expire_batch(now=now), full=EXPIRY_BATCH_ROWS)


@retry_on_conflict
def expire_batch(*, now: datetime, limit: int = EXPIRY_BATCH_ROWS) -> int:
    """Delete one batch of expired requests with what is still held for them, and return how many they were.

    A chat request that was not done publishes `faulted` once the deletion has committed (SIG-15..19, SIG-27). Two runs
    at once do the work of one: the second finds the batch's advisory lock taken and does nothing.
    """
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock("expire requests"):
            return 0
        locked = sql.fetch_all(sql.load(__file__, "lock_expired.sql"), {"now": now, "limit": limit}, Locked)
        request_ids = [row.id for row in locked]
        expired = sql.fetch_all(sql.load(__file__, "expire.sql"), {"request_ids": request_ids}, Expired)
        for request in expired:
            if request.is_chat and not request.is_done:
                completion_signal.publish_after_commit(
                    request.id,
                    CompletionEvent.FAULTED,
                    generations=request.stored,
                    fault_reason=request.fault_reason,
                    fault_rc=request.fault_rc,
                )
        # Accounts come last in the lock order. A hold that ended with its request is passed over.
        upfront.release_all({request.id: request for request in expired}, now=now)
    for request in expired:
        outcome = "done" if request.is_done else "unanswered"
        metrics.EXPIRED_REQUESTS.labels(str(request.is_chat).lower(), outcome).inc()
    return len(expired)
