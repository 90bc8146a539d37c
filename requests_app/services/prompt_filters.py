"""Keep and remove moderators' filters. A filter is not changed: it is removed, and another one added."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from hordechat.contract.limits import (
    MAX_FILTER_COUNT,
    MAX_FILTER_DESCRIPTION_CHARACTERS,
    MAX_FILTER_PATTERN_CHARACTERS,
    MAX_FILTER_REPLACEMENT_CHARACTERS,
)
from hordechat.infra import sql
from requests_app.errors import FilterRefused
from requests_app.models import PromptFilter
from requests_app.rules import patterns
from requests_app.rules.screening import FILTER_TYPES, REPLACEMENT_FILTER_TYPE
from requests_app.selectors import prompt_filters
from requests_app.selectors.prompt_filters import KeptFilter

# Raw, since the ORM locks no tables: writers wait, so that two at once cannot pass the limit; readers do not.
LOCK_AGAINST_WRITERS = "LOCK TABLE prompt_filters IN SHARE ROW EXCLUSIVE MODE"


@dataclass(frozen=True, slots=True)
class Addition:
    """The filter that is kept now, and whether this call made it."""

    kept: KeptFilter
    is_new: bool


def add(
    *,
    regex: str,
    now: datetime,
    filter_type: int = REPLACEMENT_FILTER_TYPE,
    replacement: str = "",
    description: str = "",
) -> Addition:
    """Keep a filter; one of the same type and pattern is returned as it is, whatever else was asked.

    Raises:
        FilterRefused: a value cannot be used, the pattern is unsound, or there are as many filters as there may be.
    """
    _require_text(regex, what="pattern", most=MAX_FILTER_PATTERN_CHARACTERS)
    _require_text(replacement, what="replacement", most=MAX_FILTER_REPLACEMENT_CHARACTERS)
    _require_text(description, what="description", most=MAX_FILTER_DESCRIPTION_CHARACTERS)
    if filter_type not in FILTER_TYPES:
        raise FilterRefused(f"The type has to be {FILTER_TYPES[0]} to {FILTER_TYPES[-1]}, not {filter_type}.")
    # The trial takes seconds and comes before the lock.
    fault = patterns.find_fault(regex)
    if fault is not None:
        raise FilterRefused(f"The pattern {regex!r} {fault}.")
    with transaction.atomic(durable=True):
        sql.execute(LOCK_AGAINST_WRITERS, {})
        same = prompt_filters.find_same(filter_type=filter_type, regex=regex)
        if same is not None:
            return Addition(kept=same, is_new=False)
        if prompt_filters.count() >= MAX_FILTER_COUNT:
            raise FilterRefused(f"There are {MAX_FILTER_COUNT} filters, the most there may be: remove one first.")
        row = PromptFilter.objects.create(
            regex=regex, filter_type=filter_type, replacement=replacement, description=description, created_at=now
        )
    kept = KeptFilter(
        id=row.id,
        filter_type=filter_type,
        regex=regex,
        replacement=replacement,
        description=description,
        created_at=now,
    )
    return Addition(kept=kept, is_new=True)


def remove(*, filter_id: int) -> bool:
    """Remove a filter; False when there is none with this id, which is no error: a repeat finds it gone."""
    removed, _ = PromptFilter.objects.filter(id=filter_id).delete()
    return bool(removed)


def _require_text(value: str, *, what: str, most: int) -> None:
    # What is not printable has an escape in patterns, and normalised texts hold none of it.
    if len(value) > most or not value.isprintable():
        raise FilterRefused(f"The {what} has to be at most {most} printable characters.")
