"""People, keys and kudos for moderators: all can be looked up, nothing changed, no hash of a key or password shown."""

import re
from functools import cached_property
from typing import ClassVar, cast

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from billing_app.models import Account, ApiKey, Transfer, User

ROWS_A_PAGE = 50
MOST_ROWS_COUNTED = 10_000
"""A list shows its newest rows and finds the others by search; counting millions would take longer than both."""


class BoundedPaginator(Paginator):  # type: ignore[type-arg] # generic in the stubs alone
    """Pages over the first rows of a list, which never counts beyond them."""

    @cached_property
    def count(self) -> int:
        """The rows that can be paged through."""
        return cast("QuerySet[Model]", self.object_list)[:MOST_ROWS_COUNTED].count()


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # generic in the stubs alone
    """A list any staff user may read and none may change; it is searched by exact numbers and texts."""

    exact_numbers: ClassVar[tuple[str, ...]] = ("id",)
    exact_texts: ClassVar[tuple[str, ...]] = ()
    search_fields = ("id",)
    ordering = ("-id",)
    list_per_page = ROWS_A_PAGE
    list_max_show_all = ROWS_A_PAGE
    show_full_result_count = False
    paginator = BoundedPaginator
    actions = None

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        """Let every staff user look."""
        return bool(request.user.is_active and request.user.is_staff)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the app to every staff user."""
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Let nobody add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        """Let nobody change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        """Let nobody delete."""
        return False

    def get_search_results(
        self,
        request: HttpRequest,  # noqa: ARG002
        queryset: "QuerySet[Model]",
        search_term: str,
    ) -> tuple["QuerySet[Model]", bool]:
        """Find rows by one exact number or text; `alias#id` is found by its id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        condition = Q(pk__in=())
        for name in self.exact_texts:
            condition |= Q(**{name: term})
        number = term.rpartition("#")[2]
        if re.fullmatch(r"-?[0-9]{1,18}", number):
            for name in self.exact_numbers:
                condition |= Q(**{name: int(number)})
        return queryset.filter(condition), False


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


@admin.register(Transfer)
class TransferAdmin(ReadOnlyAdmin):
    """What moved. Accounts -1, -2 and -3 are the house's: tax, burn and mint."""

    list_display = ("id", "created_at", "kind", "debit_account", "credit_account", "amount", "idempotency_key", "cause")
    fields = list_display
    exact_numbers = ("id", "debit_account", "credit_account")
    exact_texts = ("idempotency_key",)
    search_help_text = "The transfer's id, an account's id, or the whole key, such as reply:<generation id>."
