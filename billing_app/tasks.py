"""What Celery beat runs for kudos; the schedule is in `hordechat.celery`."""

from celery import shared_task

from billing_app.services import holds, revoked_keys
from hordechat.infra import beat_marks, clock


@shared_task(expires=60, time_limit=55, ignore_result=True)
def lapse_holds(**_: object) -> None:
    """Free holds past their expiry."""
    with beat_marks.recorded("lapse_holds"):
        holds.lapse_all(now=clock.now())


@shared_task(expires=3600, time_limit=55, ignore_result=True)
def prune_revoked_keys(**_: object) -> None:
    """Delete API keys that were revoked long ago."""
    with beat_marks.recorded("prune_revoked_keys"):
        revoked_keys.prune_all(now=clock.now())
