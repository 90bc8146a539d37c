"""Workers and what they are told, for operators."""

from datetime import datetime

from workers_app.errors import UnknownWorker
from workers_app.models import Worker, WorkerMessage


def get(name: str) -> Worker:
    """Return the worker of this name, with its owner.

    Raises:
        UnknownWorker: there is none.
    """
    worker = Worker.objects.select_related("user").filter(name=name).first()
    if worker is None:
        raise UnknownWorker(name)
    return worker


def list_messages(*, now: datetime, most: int) -> list[WorkerMessage]:
    """Return the messages still told, in the order they are told in."""
    told = WorkerMessage.objects.select_related("worker").filter(expiry__gt=now)
    return list(told.order_by("created", "id")[:most])
