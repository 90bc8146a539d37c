"""People, their API keys, their accounts, and the ledger of every kudos that moved."""

from decimal import Decimal
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.db.models.functions import Now

from billing_app.rules.accounts import (
    DEFAULT_CONCURRENCY,
    MAX_CONCURRENCY,
    AccountKind,
    HoldResolution,
    HouseAccount,
    TransferKind,
)
from hordechat.infra.fields import FixedCharField

KUDOS_DIGITS = 18
KUDOS_DECIMALS = 2


def kudos_field(*, starts_at_zero: bool = False) -> "models.DecimalField[Decimal | int, Decimal]":
    """Return a column for an amount of kudos: `numeric(18,2)`, never a float."""
    if starts_at_zero:
        return models.DecimalField(max_digits=KUDOS_DIGITS, decimal_places=KUDOS_DECIMALS, db_default=0)
    return models.DecimalField(max_digits=KUDOS_DIGITS, decimal_places=KUDOS_DECIMALS)


def is_account(column: str) -> models.Q:
    """Return the condition that a ledger column names a user's account or one of the house's."""
    return models.Q(**{f"{column}__gt": 0}) | models.Q(**{f"{column}__in": [house.value for house in HouseAccount]})


class StaffLogins(BaseUserManager["User"]):
    """What Django asks of the users it lets into the admin: found by login, made by `createsuperuser`."""

    def create_superuser(self, login: str, password: str | None = None) -> "User":
        """Make a staff user with every permission; it has no accounts until it is given an API key."""
        user = self.model(login=login, alias=login[:30], is_staff=True, is_superuser=True)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser, PermissionsMixin):
    """Someone who asks, serves or moderates. Id 0 is the anonymous user, who is shared by all callers without a key.

    The flags have a default in Python beside the database's: a fresh instance must not hold a (truthy) expression.
    """

    login = models.CharField(max_length=150, null=True, blank=True)  # noqa: DJ001 - most users have none
    alias = models.CharField(max_length=30)
    password = models.CharField(max_length=128, db_default=UNUSABLE_PASSWORD_PREFIX)
    is_active = models.BooleanField(default=True, db_default=True)
    is_staff = models.BooleanField(default=False, db_default=False)
    is_superuser = models.BooleanField(default=False, db_default=False)
    is_trusted = models.BooleanField(default=False, db_default=False)
    is_moderator = models.BooleanField(default=False, db_default=False)
    is_flagged = models.BooleanField(default=False, db_default=False)
    is_service = models.BooleanField(default=False, db_default=False)
    is_education = models.BooleanField(default=False, db_default=False)
    is_customizer = models.BooleanField(default=False, db_default=False)
    is_pseudonymous = models.BooleanField(default=False, db_default=False)
    is_deleted = models.BooleanField(default=False, db_default=False)
    concurrency = models.IntegerField(default=DEFAULT_CONCURRENCY, db_default=DEFAULT_CONCURRENCY)
    contact = models.CharField(max_length=500, null=True, blank=True)  # noqa: DJ001 - the wire shows null, not ""
    admin_comment = models.CharField(max_length=500, null=True, blank=True)  # noqa: DJ001 - the same
    created_at = models.DateTimeField(db_default=Now())
    last_active_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[StaffLogins] = StaffLogins()

    USERNAME_FIELD = "login"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        db_table = "users"
        constraints = [
            models.UniqueConstraint(fields=["login"], name="users_login_unique"),
            models.CheckConstraint(
                condition=models.Q(concurrency__range=(0, MAX_CONCURRENCY)), name="users_concurrency_in_range"
            ),
        ]

    def __str__(self) -> str:
        """Return the unique alias."""
        return self.unique_alias

    @property
    def unique_alias(self) -> str:
        """The name everyone sees: aliases are free, so the id makes it unique."""
        return f"{self.alias}#{self.id}"


class Account(models.Model):
    """One purse of a user: what was posted to it, what is held of it, and how low a debit takes it.

    Narrow on purpose: every charge rewrites this row, and only this row.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=10)
    posted_kudos = kudos_field(starts_at_zero=True)
    held_kudos = kudos_field(starts_at_zero=True)
    minimum_kudos = kudos_field()

    class Meta:
        db_table = "accounts"
        constraints = [
            models.UniqueConstraint(fields=["user", "kind"], name="accounts_user_kind_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in AccountKind]), name="accounts_kind_known"
            ),
            models.CheckConstraint(condition=models.Q(held_kudos__gte=0), name="accounts_held_not_negative"),
        ]

    def __str__(self) -> str:
        """Name the purse without a query."""
        return f"{self.kind} of user {self.user_id}"


class Transfer(models.Model):
    """Kudos that moved, once and for all: a trigger refuses UPDATE and DELETE.

    A mistake is answered by another transfer. Accounts and causes are plain numbers and ids:
    house accounts have no rows, and requests vanish after minutes.
    """

    idempotency_key = models.CharField(max_length=120)
    debit_account = models.BigIntegerField()
    credit_account = models.BigIntegerField()
    amount = kudos_field()
    kind = models.CharField(max_length=20)
    cause = models.UUIDField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "transfers"
        constraints = [
            models.UniqueConstraint(fields=["idempotency_key"], name="transfers_key_unique"),
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="transfers_amount_positive"),
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in TransferKind]), name="transfers_kind_listed"
            ),
            models.CheckConstraint(condition=is_account("debit_account"), name="transfers_debit_is_account"),
            models.CheckConstraint(condition=is_account("credit_account"), name="transfers_credit_is_account"),
        ]
        indexes = [
            models.Index(fields=["debit_account", "id"], name="transfers_debit_statement"),
            models.Index(fields=["credit_account", "id"], name="transfers_credit_statement"),
        ]

    def __str__(self) -> str:
        """Return the key, which says what caused it."""
        return self.idempotency_key


class Hold(models.Model):
    """Kudos of one account that are reserved for a cost not known yet, until the hold is settled, voided or lapses.

    A trigger refuses DELETE, any UPDATE of a resolved hold, and any UPDATE of an open one that does not resolve it.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    key = models.CharField(max_length=100)
    kudos = kudos_field()
    cause = models.UUIDField()
    placed_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=10, null=True)  # noqa: DJ001 - an open hold has none
    settled_kudos = kudos_field(starts_at_zero=True)

    class Meta:
        db_table = "holds"
        constraints = [
            models.UniqueConstraint(fields=["key"], name="holds_key_unique"),
            models.CheckConstraint(condition=models.Q(kudos__gt=0), name="holds_kudos_positive"),
            models.CheckConstraint(
                condition=models.Q(resolution__isnull=True)
                | models.Q(resolution__in=[resolution.value for resolution in HoldResolution]),
                name="holds_resolution_known",
            ),
            models.CheckConstraint(
                condition=models.Q(resolved_at__isnull=True, resolution__isnull=True)
                | models.Q(resolved_at__isnull=False, resolution__isnull=False),
                name="holds_resolved_with_moment",
            ),
            # A comparison with a null is neither true nor false and would let the row in, so nothing here compares one.
            models.CheckConstraint(
                condition=models.Q(settled_kudos=0)
                | models.Q(
                    resolution__isnull=False,
                    resolution=HoldResolution.SETTLED.value,
                    settled_kudos__gt=0,
                    settled_kudos__lte=models.F("kudos"),
                ),
                name="holds_settled_within_amount",
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"],
                condition=models.Q(resolved_at__isnull=True, expires_at__isnull=False),
                name="holds_to_lapse",
            ),
        ]

    def __str__(self) -> str:
        """Return the key, which says what it is for."""
        return self.key


class SharedKey(models.Model):
    """A key of a user's for others to ask with: the owner pays, up to what the key may spend."""

    id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.PROTECT)
    name = models.CharField(max_length=255, blank=True, db_default="")
    left_kudos = models.DecimalField(max_digits=KUDOS_DIGITS, decimal_places=KUDOS_DECIMALS, null=True)
    """What may still be spent under it; null: as much as the owner has."""
    used_kudos = kudos_field(starts_at_zero=True)
    max_text_tokens = models.IntegerField(null=True)
    """The longest output a request under it may ask for, in tokens; null: as long as the owner may."""
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "shared_keys"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(left_kudos__isnull=True) | models.Q(left_kudos__gte=0),
                name="shared_keys_left_not_negative",
            ),
            models.CheckConstraint(condition=models.Q(used_kudos__gte=0), name="shared_keys_used_not_negative"),
            models.CheckConstraint(
                condition=models.Q(max_text_tokens__isnull=True) | models.Q(max_text_tokens__gte=0),
                name="shared_keys_tokens_not_negative",
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="shared_keys_expires_at"
            ),
        ]

    def __str__(self) -> str:
        """Name the key by its place and not by its id, which is the credential."""
        return f"shared key of user {self.user_id}"


class ProxyPasskey(models.Model):
    """The passkey of a service account that forwards its own clients' addresses, kept as a keyed hash."""

    user = models.OneToOneField(User, on_delete=models.PROTECT, primary_key=True)
    passkey_hash = FixedCharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "proxy_passkeys"

    def __str__(self) -> str:
        """Name the service without showing any of the passkey."""
        return f"passkey of user {self.pk}"


class ApiKey(models.Model):
    """A key a user calls with, kept as a keyed hash: the key itself is shown once, when it is made."""

    user = models.ForeignKey(User, on_delete=models.PROTECT)
    key_hash = FixedCharField(max_length=64)
    pepper_id = models.CharField(max_length=64)
    name = models.CharField(max_length=100, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "api_keys"
        constraints = [models.UniqueConstraint(fields=["key_hash"], name="api_keys_hash_unique")]
        indexes = [
            models.Index(
                fields=["revoked_at"], condition=models.Q(revoked_at__isnull=False), name="api_keys_revoked_at"
            ),
        ]

    def __str__(self) -> str:
        """Name the key without showing any of it."""
        return f"key {self.pk} of user {self.user_id}"
