"""What Celery beat runs for requests; the schedule is in `hordechat.celery`."""

from celery import shared_task

from hordechat.infra import beat_marks, clock
from requests_app.services import expiry, faults


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
