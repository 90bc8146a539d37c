"""Make users and their API keys. A key is returned once, when it is made: only its hash is stored, and nothing logged.

Whoever has a key has both accounts; a staff user made by `createsuperuser` gets them with the first key.
"""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from billing_app.errors import LoginTaken, NotAnAmount, UnknownUser, UserRefused
from billing_app.models import Account, ApiKey, User
from billing_app.rules.accounts import (
    ANONYMOUS_USER_ID,
    AccountKind,
    HouseAccount,
    TransferKind,
    is_amount,
    minimum_kudos,
)
from billing_app.selectors import keys
from billing_app.services import ledger

KEY_BYTES = 16
"""Of randomness in a key: 22 characters that can stand in a URL."""

MAX_ALIAS_CHARACTERS = 30
MAX_KEY_NAME_CHARACTERS = 100
MAX_LOGIN_CHARACTERS = 150


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """A user and the key just made for them; the key is left out of the representation, which may be logged."""

    id: int
    unique_alias: str
    api_key: str = field(repr=False)


def create_user(
    *,
    alias: str,
    now: datetime,
    kudos: Decimal = Decimal(0),
    is_trusted: bool = False,
    is_service: bool = False,
    is_staff: bool = False,
    login: str | None = None,
    password: str | None = None,
) -> KeyOwner:
    """Make a user with both accounts, a first API key and kudos to start with.

    Raises:
        LoginTaken: somebody has the login.
        UserRefused: a value cannot be used.
    """
    _require_name(alias, what="alias", most=MAX_ALIAS_CHARACTERS)
    _require_start_kudos(kudos)
    user = User(
        alias=alias, login=login, is_trusted=is_trusted, is_service=is_service, is_staff=is_staff, created_at=now
    )
    if is_staff:
        _require_name(login or "", what="login of a staff user", most=MAX_LOGIN_CHARACTERS)
        _require_password(password, user=user)
    elif login is not None or password is not None:
        raise UserRefused("Only staff users have a login and a password; everyone else calls with an API key.")
    user.set_password(password)
    try:
        with transaction.atomic(durable=True):
            user.save(force_insert=True)
            api_key = _add_key(user, name="first", now=now)
            if kudos:
                _pay_start(user, kudos=kudos, now=now)
    except IntegrityError as error:
        if login is not None and "users_login_unique" in str(error):
            raise LoginTaken(login) from error
        raise
    return KeyOwner(id=user.id, unique_alias=user.unique_alias, api_key=api_key)


def create_key(*, user_id: int, now: datetime, name: str = "") -> KeyOwner:
    """Give a user one more API key; those the user has stay valid.

    Raises:
        UnknownUser: nobody has this id.
        UserRefused: the user is the anonymous one, or the name cannot be used.
    """
    if user_id == ANONYMOUS_USER_ID:
        raise UserRefused("The anonymous user is reached by the public key alone.")
    if name:
        _require_name(name, what="name", most=MAX_KEY_NAME_CHARACTERS)
    with transaction.atomic(durable=True):
        user = User.objects.filter(id=user_id).first()
        if user is None:
            raise UnknownUser(user_id)
        api_key = _add_key(user, name=name, now=now)
    return KeyOwner(id=user.id, unique_alias=user.unique_alias, api_key=api_key)


def _add_key(user: User, *, name: str, now: datetime) -> str:
    assert connection.in_atomic_block, "a key comes with the accounts its owner needs"
    Account.objects.bulk_create(
        [
            Account(
                user=user,
                kind=kind.value,
                minimum_kudos=minimum_kudos(kind=kind, is_pseudonymous=user.is_pseudonymous),
            )
            for kind in AccountKind
        ],
        ignore_conflicts=True,
    )
    api_key = secrets.token_urlsafe(KEY_BYTES)
    pepper_id, key_hash = keys.hash_new(api_key)
    ApiKey.objects.create(user=user, key_hash=key_hash, pepper_id=pepper_id, name=name, created_at=now)
    return api_key


def _pay_start(user: User, *, kudos: Decimal, now: datetime) -> None:
    balance_id = Account.objects.values_list("id", flat=True).get(user=user, kind=AccountKind.BALANCE.value)
    start = ledger.NewTransfer(
        idempotency_key=f"start:{user.id}",
        debit_account=HouseAccount.MINT,
        credit_account=balance_id,
        amount=kudos,
        kind=TransferKind.START,
    )
    ledger.post([start], now=now)


def _require_name(value: str, *, what: str, most: int) -> None:
    if not 0 < len(value) <= most or not value.isprintable() or value != value.strip():
        raise UserRefused(
            f"The {what} has to be 1 to {most} printable characters without spaces around, not {value!r}."
        )


def _require_start_kudos(kudos: Decimal) -> None:
    if not is_amount(kudos):
        raise NotAnAmount(kudos)


def _require_password(password: str | None, *, user: User) -> None:
    if not password:
        raise UserRefused("A staff user needs a password.")
    try:
        validate_password(password, user=user)
    except ValidationError as error:
        raise UserRefused(f"The password cannot be used: {' '.join(error.messages)}") from error
