"""Delete shared keys that expired long ago and that no request refers to: only here is known which do."""

from datetime import datetime

from django.db import transaction

from billing_app.rules.keys import KEPT_AFTER_END
from hordechat.infra import advisory_locks, batches, sql
from hordechat.infra.transactions import retry_on_conflict

PRUNE_BATCH_ROWS = 1000


def prune_all(*, now: datetime) -> int:
    """Delete every unused key that expired long ago, batch by batch within a run's time, and return how many."""
    return batches.run_all(lambda: prune_batch(now=now), full=PRUNE_BATCH_ROWS)


@retry_on_conflict
def prune_batch(*, now: datetime, limit: int = PRUNE_BATCH_ROWS) -> int:
    """Delete one batch of unused keys that expired long ago and return how many they were.

    Two runs at once do the work of one: the second finds the batch's advisory lock taken and does nothing.
    """
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock("prune shared keys"):
            return 0
        return sql.execute(
            sql.load(__file__, "prune_shared_keys.sql"), {"ended_before": now - KEPT_AFTER_END, "limit": limit}
        )
