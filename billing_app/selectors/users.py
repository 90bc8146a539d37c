"""Who somebody is, as values."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from billing_app.models import User
from billing_app.selectors import keys
from hordechat.infra import sql


@dataclass(frozen=True, slots=True)
class UserProfile:
    """What a user may know of themself, as far as this app knows it: workers and running requests are counted above."""

    id: int
    unique_alias: str
    kudos: Decimal
    evaluating_kudos: Decimal
    concurrency: int
    is_trusted: bool
    is_moderator: bool
    is_flagged: bool
    is_service: bool
    is_education: bool
    is_customizer: bool
    is_pseudonymous: bool
    is_deleted: bool
    contact: str | None
    account_age_seconds: int


def find_by_key(key: str, *, now: datetime) -> UserProfile | None:
    """Return the user an API key belongs to, or None for a key that is unknown or revoked."""
    key_hashes = keys.candidate_hashes(key)
    if not key_hashes:
        return None
    return sql.find_one(sql.load(__file__, "profile_by_key.sql"), {"key_hashes": key_hashes, "now": now}, UserProfile)


def find_unique_alias(*, user_id: int) -> str | None:
    """Return the name everyone knows a user by, or None when nobody has this id."""
    user = User.objects.only("id", "alias").filter(id=user_id).first()
    return None if user is None else user.unique_alias
