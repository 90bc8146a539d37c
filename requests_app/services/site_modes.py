"""Throw the switches of the whole site."""

from requests_app.models import SiteMode

THE_ONE_ROW = 1


def set_maintenance(*, is_on: bool) -> None:
    """Refuse new requests from now on, or take them again; what is queued is served either way."""
    SiteMode.objects.bulk_create(
        [SiteMode(id=THE_ONE_ROW, maintenance=is_on)],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["maintenance"],
    )
