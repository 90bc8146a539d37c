"""What Celery beat runs for requests; the schedule is in `hordechat.celery`."""

from celery import shared_task

from hordechat.infra import beat_marks, clock
from requests_app.services import expired_keys, expiry, faults, statistics


@shared_task(expires=60, time_limit=55, ignore_result=True)
def abort_lapsed_leases(**_: object) -> None:
    """Abort generations whose lease has lapsed."""
    with beat_marks.recorded("abort_lapsed_leases"):
        faults.abort_all_lapsed(now=clock.now())


@shared_task(expires=60, time_limit=55, ignore_result=True)
def expire_requests(**_: object) -> None:
    """Delete requests past their expiry."""
    with beat_marks.recorded("expire_requests"):
        expiry.expire_all(now=clock.now())


@shared_task(expires=60, time_limit=55, ignore_result=True)
def roll_up_statistics(**_: object) -> None:
    """Sum up the generations that ended, and forget sums nobody asks for any more."""
    with beat_marks.recorded("roll_up_statistics"):
        statistics.roll_up_all(now=clock.now())


@shared_task(expires=3600, time_limit=55, ignore_result=True)
def prune_shared_keys(**_: object) -> None:
    """Delete shared keys that expired long ago."""
    with beat_marks.recorded("prune_shared_keys"):
        expired_keys.prune_all(now=clock.now())
