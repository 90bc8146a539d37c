"""What operators do to a worker: maintenance, pauses, and messages it gets with its pops."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

from workers_app.models import Worker, WorkerMessage

MAX_MAINTENANCE_MESSAGE_CHARACTERS = 300
MAX_MESSAGE_CHARACTERS = 2048


class UnknownWorker(Exception):
    """Nobody's worker has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no worker named '{name}'.")


def find(name: str) -> Worker:
    """Return the worker of this name, with its owner.

    Raises:
        UnknownWorker: there is none.
    """
    worker = Worker.objects.select_related("user").filter(name=name).first()
    if worker is None:
        raise UnknownWorker(name)
    return worker


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
    worker = None if worker_name is None else find(worker_name)
    sent = WorkerMessage.objects.create(
        id=uuid4(), worker=worker, message=message, origin=origin, created=now, expiry=now + timedelta(hours=hours)
    )
    return sent.id


def remove_message(message_id: UUID) -> bool:
    """Tell it no more; False when there was no such message."""
    return WorkerMessage.objects.filter(id=message_id).delete()[0] > 0


def list_messages(*, now: datetime, most: int) -> list[WorkerMessage]:
    """Return the messages still told, in the order they are told in; those that ended are removed."""
    WorkerMessage.objects.filter(expiry__lte=now).delete()
    return list(WorkerMessage.objects.select_related("worker").order_by("created", "id")[:most])


def _update(name: str, **values: object) -> None:
    if not Worker.objects.filter(name=name).update(**values):
        raise UnknownWorker(name)
