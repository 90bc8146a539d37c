"""The Celery application and the one schedule. Two schedulers, or a task that runs twice or late, do no harm."""

import os

from celery import Celery
from celery.signals import setup_logging, task_postrun, task_prerun, worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hordechat.settings.django")

from django.conf import settings

from hordechat.infra import logging as horde_logging
from hordechat.model_reference import reference

BEAT_SCHEDULE = {
    "abort lapsed leases": {"task": "requests_app.tasks.abort_lapsed_leases", "schedule": 60.0},
    "expire requests": {"task": "requests_app.tasks.expire_requests", "schedule": 60.0},
    "lapse holds": {"task": "billing_app.tasks.lapse_holds", "schedule": 60.0},
    "refresh the model reference": {
        "task": "hordechat.model_reference.tasks.refresh_model_reference",
        "schedule": 60.0,
    },
    "roll up statistics": {"task": "requests_app.tasks.roll_up_statistics", "schedule": 60.0},
    "prune shared keys": {"task": "requests_app.tasks.prune_shared_keys", "schedule": 3600.0},
    "prune revoked keys": {"task": "billing_app.tasks.prune_revoked_keys", "schedule": 3600.0},
}
"""What runs when, in seconds."""

app = Celery("hordechat", set_as_current=True)
app.conf.update(
    broker_url=settings.HORDE.broker_url,
    broker_connection_retry_on_startup=True,
    beat_schedule=BEAT_SCHEDULE,
    task_ignore_result=True,
    task_acks_late=True,
    task_default_queue="hordechat",
    timezone="UTC",
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=1,
    worker_redirect_stdouts=False,
)
app.autodiscover_tasks(["billing_app", "requests_app", "hordechat.model_reference"])


@setup_logging.connect
def keep_own_logging(**_: object) -> None:
    """Keep Celery from replacing the logging Django set up."""


@worker_process_init.connect
def take_model_reference(**_: object) -> None:
    """Know the operator's models before the first task asks for one."""
    reference.start()


@task_prerun.connect
def name_log_lines(task_id: str, **_: object) -> None:
    """Put the task's id on the log lines it writes."""
    horde_logging.request_id.set(task_id)


@task_postrun.connect
def unname_log_lines(**_: object) -> None:
    """Take the task's id off again."""
    horde_logging.request_id.set("-")
