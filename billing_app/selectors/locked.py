"""Rows read under their lock, which this transaction keeps until it ends."""

from dataclasses import dataclass
from decimal import Decimal

from billing_app.models import Account, User
from billing_app.rules.accounts import AccountKind


@dataclass(frozen=True, slots=True)
class LockedAccount:
    """An account nobody else can change."""

    id: int
    posted_kudos: Decimal


@dataclass(frozen=True, slots=True)
class LockedUser:
    """A user nobody else can change, while others can still refer to them."""

    unique_alias: str
    is_trusted: bool
    is_education: bool


def find_user(*, user_id: int) -> LockedUser | None:
    """Lock a user's row and return it, or None when nobody has the id."""
    user = User.objects.select_for_update(no_key=True).filter(id=user_id).first()
    if user is None:
        return None
    return LockedUser(unique_alias=user.unique_alias, is_trusted=user.is_trusted, is_education=user.is_education)


def list_accounts(*, user_id: int) -> dict[AccountKind, LockedAccount]:
    """Lock a user's accounts, by ascending id, and return them by kind."""
    rows = (
        Account.objects.select_for_update(no_key=True)
        .filter(user_id=user_id)
        .order_by("id")
        .values_list("kind", "id", "posted_kudos")
    )
    return {AccountKind(kind): LockedAccount(id=account_id, posted_kudos=posted) for kind, account_id, posted in rows}
