"""What every admin list of the project has in common: all can be looked up, nothing changed."""

import re
from functools import cached_property
from typing import ClassVar, cast
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

ROWS_A_PAGE = 50
MOST_ROWS_COUNTED = 10_000
"""A list shows its first rows and finds the others by search; counting millions would take longer than both."""
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")


class BoundedPaginator(Paginator):  # type: ignore[type-arg] # generic in the stubs alone
    """Pages over the first rows of a list, which never counts beyond them."""

    @cached_property
    def count(self) -> int:
        """The rows that can be paged through."""
        return cast("QuerySet[Model]", self.object_list)[:MOST_ROWS_COUNTED].count()


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # generic in the stubs alone
    """A list any staff user may read and none may change; it is searched by exact numbers, texts and UUIDs."""

    exact_numbers: ClassVar[tuple[str, ...]] = ("id",)
    exact_texts: ClassVar[tuple[str, ...]] = ()
    exact_uuids: ClassVar[tuple[str, ...]] = ()
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
        for name in self.exact_uuids if UUID_TEXT.fullmatch(term) else ():
            condition |= Q(**{name: UUID(term)})
        return queryset.filter(condition), False
