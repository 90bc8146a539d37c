"""People, keys and kudos for moderators: all can be looked up, nothing changed.

No hash of a key or password is shown, and of a shared key's id, with which anyone can ask, only the start.
"""

from django.contrib import admin

from billing_app.models import Account, ApiKey, Hold, SharedKey, Transfer, User
from hordechat.infra.read_only_admin import ReadOnlyAdmin

SHOWN_ID_CHARACTERS = 8


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    """Who is there."""

    list_display = (
        "id", "unique_alias", "login", "is_staff", "is_moderator", "is_trusted", "is_flagged", "concurrency",
        "created_at",
    )  # fmt: skip
    fields = (
        "id", "alias", "login", "is_active", "is_staff", "is_moderator", "is_trusted", "is_flagged", "is_service",
        "is_education", "is_customizer", "is_pseudonymous", "is_deleted", "concurrency", "contact", "admin_comment",
        "created_at", "last_active_at", "last_login",
    )  # fmt: skip
    exact_texts = ("login",)
    search_help_text = "The id, the whole alias with its #id, or the login."


@admin.register(Account)
class AccountAdmin(ReadOnlyAdmin):
    """What they have."""

    list_display = ("id", "user", "kind", "posted_kudos", "held_kudos", "minimum_kudos")
    fields = list_display
    list_select_related = ("user",)
    exact_numbers = ("id", "user_id")
    search_help_text = "The account's id, or its user's."


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """What they call with; the hash stays in the database."""

    list_display = ("id", "user", "name", "pepper_id", "created_at", "revoked_at")
    fields = list_display
    list_select_related = ("user",)
    exact_numbers = ("id", "user_id")
    search_help_text = "The key's id, or its user's."


@admin.register(SharedKey)
class SharedKeyAdmin(ReadOnlyAdmin):
    """What others may ask with. The id is the credential: a list shows its start and links to no whole one."""

    list_display = (
        "id_start", "user", "name", "left_kudos", "used_kudos", "max_text_tokens", "expires_at", "created_at",
    )  # fmt: skip
    list_display_links = None
    fields = list_display
    list_select_related = ("user",)
    ordering = ("-created_at",)
    exact_numbers = ("user_id",)
    exact_uuids = ("id",)
    search_help_text = "The key's whole id, or its user's."

    @admin.display(description="id")
    def id_start(self, key: SharedKey) -> str:
        """Return enough of the id to tell keys apart, and too little to ask with."""
        return f"{str(key.id)[:SHOWN_ID_CHARACTERS]}…"


@admin.register(Transfer)
class TransferAdmin(ReadOnlyAdmin):
    """What moved. Accounts -1, -2 and -3 are the house's: tax, burn and mint."""

    list_display = ("id", "created_at", "kind", "debit_account", "credit_account", "amount", "idempotency_key", "cause")
    fields = list_display
    exact_numbers = ("id", "debit_account", "credit_account")
    exact_texts = ("idempotency_key",)
    search_help_text = "The transfer's id, an account's id, or the whole key, such as reply:<generation id>."


@admin.register(Hold)
class HoldAdmin(ReadOnlyAdmin):
    """What is reserved, and how each reservation ended."""

    list_display = (
        "id", "account_id", "kudos", "key", "cause", "placed_at", "expires_at", "resolution", "resolved_at",
        "settled_kudos",
    )  # fmt: skip
    fields = (
        "id", "account", "kudos", "key", "cause", "placed_at", "expires_at", "resolution", "resolved_at",
        "settled_kudos",
    )  # fmt: skip
    exact_numbers = ("id", "account_id")
    exact_texts = ("key",)
    search_help_text = "The hold's id, its account's id, or the whole key, such as upfront:<request id>."
