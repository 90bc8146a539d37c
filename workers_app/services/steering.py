"""What operators do to a worker: maintenance, pauses, and messages it gets with its pops."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

from workers_app.errors import UnknownWorker
from workers_app.models import Worker, WorkerMessage
from workers_app.selectors import workers

MAX_MAINTENANCE_MESSAGE_CHARACTERS = 300


def start_maintenance(name: str, *, message: str | None) -> None:
    """Let the worker serve its owner alone and tell it why; None is the usual words.

    Raises:
        UnknownWorker: nobody's worker has this name.
    """
    _update(name, maintenance=True, maintenance_message=message)


def end_maintenance(name: str) -> None:
    """Let the worker serve everybody again.

    Raises:
        UnknownWorker: nobody's worker has this name.
    """
    _update(name, maintenance=False, maintenance_message=None)


def pause(name: str) -> None:
    """Let the worker serve its owner, and be fobbed off with copies of everybody else's requests.

    Raises:
        UnknownWorker: nobody's worker has this name.
    """
    _update(name, paused=True)


def end_pause(name: str) -> None:
    """Let the worker serve everybody again and forget suspicions, or the next would pause it.

    Raises:
        UnknownWorker: nobody's worker has this name.
    """
    _update(name, paused=False, suspicions=0)


def send_message(message: str, *, worker_name: str | None, origin: str, hours: int, now: datetime) -> UUID:
    """Tell a worker something with each of its pops, or every worker (None), until the hours are over.

    Raises:
        UnknownWorker: nobody's worker has this name.
    """
    worker = None if worker_name is None else workers.get(worker_name)
    # Here, where the table grows, is where it shrinks.
    WorkerMessage.objects.filter(expiry__lte=now).delete()
    sent = WorkerMessage.objects.create(
        id=uuid4(), worker=worker, message=message, origin=origin, created=now, expiry=now + timedelta(hours=hours)
    )
    return sent.id


def remove_message(message_id: UUID) -> bool:
    """Tell it no more; False when there was no such message."""
    return WorkerMessage.objects.filter(id=message_id).delete()[0] > 0


def _update(name: str, **values: object) -> None:
    if not Worker.objects.filter(name=name).update(**values):
        raise UnknownWorker(name)
