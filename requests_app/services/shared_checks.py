"""The checks chat and text submissions share, each at its place in the documented order (ORD-05, text-path 2.4)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from billing_app.errors import DeletedUser, InvalidApiKey, SharedKeyEmpty, SharedKeyExpired
from hordechat.contract.limits import MAX_NAMED_WORKERS
from hordechat.infra import address_timeouts
from requests_app.errors import MaintenanceMode, TooManyPrompts, WorkerNotFound
from requests_app.selectors.requesters import Requester
from workers_app.errors import AddressTimedOut


def require_open_site(requester: Requester) -> None:
    """Refuse everything while the site is in maintenance, whoever asks."""
    if requester.is_in_maintenance:
        raise MaintenanceMode


def require_valid_key(requester: Requester, *, now: datetime) -> None:
    """Refuse a key nobody has, and a shared key that is used up or over."""
    if requester.user_id is None:
        raise InvalidApiKey
    if requester.shared_key_id is not None:
        if requester.left_kudos == 0:
            raise SharedKeyEmpty
        if requester.expires_at is not None and requester.expires_at <= now:
            raise SharedKeyExpired


def require_living_account(requester: Requester) -> None:
    """Refuse a user whose account is about to be deleted."""
    if requester.is_deleted:
        raise DeletedUser


def read_worker_ids(sent: Sequence[str]) -> dict[str, UUID | None]:
    """Return the named workers that count, each as sent with its id; None for what cannot be one."""
    return {worker: _parse_id(worker) for worker in sent[:MAX_NAMED_WORKERS]}


def _parse_id(sent: str) -> UUID | None:
    try:
        return UUID(sent)
    except ValueError:
        return None


def list_ids(named: Mapping[str, UUID | None]) -> list[UUID]:
    """Return the ids among the named workers."""
    return [worker for worker in named.values() if worker is not None]


def require_known_workers(named: Mapping[str, UUID | None], *, known: Collection[UUID]) -> None:
    """Refuse a worker nobody has (ORD-30)."""
    for sent, worker in named.items():
        if worker not in known:
            raise WorkerNotFound(worker_id=sent)


def require_concurrency(requester: Requester, *, waiting_slots: int) -> None:
    """Refuse more waiting slots than the user may have, those asked for included."""
    assert requester.concurrency is not None, "the key was resolved"
    if waiting_slots > requester.concurrency:
        raise TooManyPrompts(waiting=waiting_slots, limit=requester.concurrency, is_anonymous=requester.is_anonymous)


def require_no_timeout(address: str | None, *, now: datetime) -> None:
    """Refuse an address that was put into a time-out."""
    seconds = address_timeouts.find_seconds_left(address, now=now)
    if seconds is not None:
        raise AddressTimedOut(seconds=seconds)
