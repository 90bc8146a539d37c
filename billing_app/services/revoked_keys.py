"""Delete API keys that were revoked long ago. Shared keys, which requests refer to, are the business of requests."""

from datetime import datetime

from django.db import transaction

from billing_app.models import ApiKey
from billing_app.rules.accounts import ANONYMOUS_USER_ID
from billing_app.rules.keys import KEPT_AFTER_END
from hordechat.infra import advisory_locks, batches
from hordechat.infra.transactions import retry_on_conflict

PRUNE_BATCH_ROWS = 1000


def prune_all(*, now: datetime) -> int:
    """Delete every key revoked long ago, batch by batch within a run's time, and return how many they were."""
    return batches.run_all(lambda: prune_batch(now=now), full=PRUNE_BATCH_ROWS)


@retry_on_conflict
def prune_batch(*, now: datetime, limit: int = PRUNE_BATCH_ROWS) -> int:
    """Delete one batch of keys revoked long ago and return how many they were; the public key stays whatever it says.

    Two runs at once do the work of one: the second finds the batch's advisory lock taken and does nothing.
    """
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock("prune revoked keys"):
            return 0
        ended = (
            ApiKey.objects.filter(revoked_at__lte=now - KEPT_AFTER_END)
            .exclude(user_id=ANONYMOUS_USER_ID)
            .order_by("revoked_at", "id")[:limit]
        )
        deleted, _ = ApiKey.objects.filter(id__in=ended.values("id")).delete()
    return deleted
