"""Throw the switches of the whole site."""

from collections.abc import Callable
from datetime import datetime

from requests_app.models import SiteMode
from requests_app.services import cancel

THE_ONE_ROW = 1


def cancel_for_maintenance(*, now: datetime, tell: Callable[[int], None]) -> int:
    """Refuse new requests from now on and cancel those that wait; return how many they were (SIG-13).

    A submission that was past its checks when the switch was thrown may still be queued: a second call finds it.
    """
    set_maintenance(is_on=True)
    return cancel.cancel_all_waiting(now=now, tell=tell)


def set_maintenance(*, is_on: bool) -> None:
    """Refuse new requests from now on, or take them again; what is queued is served either way."""
    SiteMode.objects.bulk_create(
        [SiteMode(id=THE_ONE_ROW, maintenance=is_on)],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["maintenance"],
    )
