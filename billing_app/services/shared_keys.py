"""Make and end shared keys: others ask with one, and its owner pays, up to what the key may spend."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q

from billing_app.errors import NotAnAmount, TooManySharedKeys, UnknownSharedKey, UnknownUser, UserRefused
from billing_app.models import SharedKey
from billing_app.rules.accounts import ANONYMOUS_USER_ID, is_amount
from billing_app.rules.shared_keys import DEFAULT_SHARED_KUDOS, max_shared_keys
from billing_app.selectors import locked, shared_keys
from hordechat.contract.limits import MAX_INTEGER

MAX_NAME_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class NewSharedKey:
    """A key just made, and whose it is; the id is the credential and left out of the representation."""

    id: UUID = field(repr=False)
    unique_alias: str


def create(
    *,
    user_id: int,
    now: datetime,
    kudos: Decimal | None = DEFAULT_SHARED_KUDOS,
    expires_at: datetime | None = None,
    name: str = "",
    max_text_tokens: int | None = None,
) -> NewSharedKey:
    """Make a shared key; without kudos, moment or tokens it has no limit of that sort.

    Raises:
        UnknownUser: nobody has this id.
        TooManySharedKeys: the user has as many as they may.
        UserRefused: the user is the anonymous one, or a value cannot be used.
    """
    if user_id == ANONYMOUS_USER_ID:
        raise UserRefused("The anonymous user has no shared keys: everybody has its key.")
    if kudos is not None and not is_amount(kudos):
        raise NotAnAmount(kudos)
    if expires_at is not None and expires_at <= now:
        raise UserRefused("The key has to expire in the future.")
    if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise UserRefused(f"The name has to be at most {MAX_NAME_CHARACTERS} printable characters.")
    if max_text_tokens is not None and not 0 <= max_text_tokens <= MAX_INTEGER:
        raise UserRefused(f"The tokens have to be 0 to {MAX_INTEGER}, not {max_text_tokens}.")
    with transaction.atomic(durable=True):
        # Its row is what two calls for one user meet at, so that both cannot count the same keys.
        owner = locked.find_user(user_id=user_id)
        if owner is None:
            raise UnknownUser(user_id)
        limit = max_shared_keys(is_trusted=owner.is_trusted, is_education=owner.is_education)
        if shared_keys.count_valid(user_id=user_id, now=now) >= limit:
            raise TooManySharedKeys(limit=limit)
        key = SharedKey.objects.create(
            id=uuid4(),
            user_id=user_id,
            name=name,
            left_kudos=kudos,
            max_text_tokens=max_text_tokens,
            expires_at=expires_at,
            created_at=now,
        )
    return NewSharedKey(id=key.id, unique_alias=owner.unique_alias)


def expire(*, key_id: UUID, now: datetime) -> bool:
    """End a key, whose requests are served to their end; False when it had expired before.

    Raises:
        UnknownSharedKey: no key has this id.
    """
    is_valid = Q(expires_at=None) | Q(expires_at__gt=now)
    if SharedKey.objects.filter(is_valid, id=key_id).update(expires_at=now):
        return True
    if not shared_keys.exists(key_id=key_id):
        raise UnknownSharedKey
    return False
