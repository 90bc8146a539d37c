"""Questions about holds."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from billing_app.models import Hold
from billing_app.rules.accounts import HoldResolution


@dataclass(frozen=True, slots=True)
class HoldState:
    """A hold as it is; open while it has no resolution."""

    key: str
    account_id: int
    kudos: Decimal
    expires_at: datetime | None
    resolution: HoldResolution | None
    settled_kudos: Decimal

    @property
    def is_open(self) -> bool:
        """Whether its kudos are still reserved."""
        return self.resolution is None


def find(*, key: str) -> HoldState | None:
    """Return the hold of a key, or None."""
    hold = Hold.objects.filter(key=key).first()
    if hold is None:
        return None
    return HoldState(
        key=hold.key,
        account_id=hold.account_id,
        kudos=hold.kudos,
        expires_at=hold.expires_at,
        resolution=None if hold.resolution is None else HoldResolution(hold.resolution),
        settled_kudos=hold.settled_kudos,
    )


def list_overdue(*, now: datetime, limit: int) -> list[str]:
    """Return the keys of open holds past their expiry, those that are overdue longest first."""
    return list(
        Hold.objects.filter(resolved_at__isnull=True, expires_at__isnull=False, expires_at__lte=now)
        .order_by("expires_at", "id")
        .values_list("key", flat=True)[:limit]
    )
