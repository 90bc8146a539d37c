"""Make and revoke the passkeys of services that forward their clients' addresses; only a keyed hash is stored."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from billing_app.errors import NoProxyService, UnknownUser
from billing_app.models import ProxyPasskey, User
from billing_app.selectors import keys

PASSKEY_BYTES = 32
"""Of randomness in a passkey: 43 characters that can stand in a header."""


@dataclass(frozen=True, slots=True)
class PasskeyOwner:
    """A service and the passkey just made for it, which is left out of the representation: it may be logged."""

    id: int
    unique_alias: str
    proxy_passkey: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Revocation:
    """Whose passkey was to be revoked, and whether there was one."""

    id: int
    unique_alias: str
    was_known: bool


def create(*, user_id: int, now: datetime) -> PasskeyOwner:
    """Give a service a passkey in place of the one it may have.

    Raises:
        NoProxyService: the user is no service account, or is flagged or deleted.
        UnknownUser: nobody has this id.
    """
    passkey = secrets.token_urlsafe(PASSKEY_BYTES)
    _, passkey_hash = keys.hash_new(passkey)
    with transaction.atomic(durable=True):
        user = _get_user(user_id)
        # A help for operators and no guard: whoever asks for known passkeys looks at the owner again.
        if not user.is_service or user.is_flagged or user.is_deleted:
            raise NoProxyService(user.unique_alias)
        ProxyPasskey.objects.bulk_create(
            [ProxyPasskey(user=user, passkey_hash=passkey_hash, created_at=now)],
            update_conflicts=True,
            unique_fields=["user"],
            update_fields=["passkey_hash", "created_at"],
        )
    return PasskeyOwner(id=user.id, unique_alias=user.unique_alias, proxy_passkey=passkey)


def revoke(*, user_id: int) -> Revocation:
    """Take a user's passkey back; whoever is no service any more may still have one.

    Raises:
        UnknownUser: nobody has this id.
    """
    with transaction.atomic(durable=True):
        user = _get_user(user_id)
        deleted, _ = ProxyPasskey.objects.filter(user=user).delete()
    return Revocation(id=user.id, unique_alias=user.unique_alias, was_known=bool(deleted))


def _get_user(user_id: int) -> User:
    user = User.objects.filter(id=user_id).first()
    if user is None:
        raise UnknownUser(user_id)
    return user
