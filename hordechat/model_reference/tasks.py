"""What Celery beat runs for the model reference; the schedule is in `hordechat.celery`."""

from celery import shared_task

from hordechat.infra import beat_marks, clock
from hordechat.model_reference import refresh


@shared_task(expires=60, time_limit=55, ignore_result=True)
def refresh_model_reference(**_: object) -> None:
    """Read the operator's model reference anew when its copy is an hour old."""
    with beat_marks.recorded("refresh_model_reference"):
        refresh.refresh(now=clock.now())
