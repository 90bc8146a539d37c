"""Shared keys, as values. The id is the credential: show it to operators alone, and log it nowhere."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import Q

from billing_app.models import SharedKey, User
from billing_app.rules.shared_keys import MAX_SHARED_KEYS_OF_EDUCATION

MOST_LISTED = 2 * MAX_SHARED_KEYS_OF_EDUCATION


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKeyState:
    """What a shared key may still do."""

    id: UUID = field(repr=False)
    name: str
    left_kudos: Decimal | None
    used_kudos: Decimal
    max_text_tokens: int | None
    expires_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKeys:
    """A user and the user's shared keys, the newest first."""

    unique_alias: str
    keys: list[SharedKeyState]


def find_of_user(*, user_id: int) -> SharedKeys | None:
    """Return a user's shared keys, those that expired included, or None when nobody has the id."""
    user = User.objects.filter(id=user_id).first()
    if user is None:
        return None
    rows = SharedKey.objects.filter(user_id=user_id).order_by("-created_at", "id")[:MOST_LISTED]
    return SharedKeys(
        unique_alias=user.unique_alias,
        keys=[SharedKeyState(**row) for row in rows.values(*SharedKeyState.__slots__)],
    )


def count_valid(*, user_id: int, now: datetime) -> int:
    """Return how many of a user's shared keys have not expired."""
    return SharedKey.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), user_id=user_id).count()


def exists(*, key_id: UUID) -> bool:
    """Return whether there is such a key."""
    return SharedKey.objects.filter(id=key_id).exists()
