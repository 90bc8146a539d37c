"""The moderators' filters, as values."""

from dataclasses import dataclass
from datetime import datetime

from hordechat.contract.limits import MAX_FILTER_COUNT
from requests_app.models import PromptFilter
from requests_app.rules.screening import REPLACEMENT_FILTER_TYPE, Filter


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFilter:
    """A filter of any type, as moderators see it."""

    id: int
    filter_type: int
    regex: str
    replacement: str
    description: str
    created_at: datetime


def list_replacements() -> list[Filter]:
    """Return the filters that rewrite texts, in the order they are applied in."""
    rows = PromptFilter.objects.filter(filter_type=REPLACEMENT_FILTER_TYPE).order_by("id")
    return [
        Filter(id=filter_id, regex=regex, replacement=replacement)
        for filter_id, regex, replacement in rows.values_list("id", "regex", "replacement")[:MAX_FILTER_COUNT]
    ]


def list_kept() -> list[KeptFilter]:
    """Return every filter, by id."""
    rows = PromptFilter.objects.order_by("id")[:MAX_FILTER_COUNT]
    return [KeptFilter(**row) for row in rows.values(*KeptFilter.__slots__)]


def find_same(*, filter_type: int, regex: str) -> KeptFilter | None:
    """Return the filter of a type that looks for the same pattern, if there is one."""
    rows = PromptFilter.objects.filter(filter_type=filter_type, regex=regex)
    row = rows.values(*KeptFilter.__slots__).first()
    return None if row is None else KeptFilter(**row)


def count() -> int:
    """Return how many filters there are, of all types."""
    return PromptFilter.objects.count()
