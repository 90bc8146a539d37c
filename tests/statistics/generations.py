"""Generations that ended, as whoever ends one writes them down, and what is told of them."""

from datetime import UTC, datetime
from typing import Any

from requests_app.models import FinishedGeneration, GenerationTotal
from requests_app.selectors import statistics
from requests_app.selectors.statistics import Total

NOW = datetime(2026, 3, 2, 12, 5, 30, tzinfo=UTC)
MODEL = "elinas/chronos-70b-v2"
"""One of the reference's, so that totals bear its name."""


def finished(**changes: Any) -> FinishedGeneration:
    """Return a usual reply's row, not yet written."""
    columns = {
        "finished_at": NOW,
        "model": MODEL,
        "is_chat": False,
        "outcome": "ok",
        "max_length": 64,
        "written_tokens": 20,
        "milliseconds": 1500,
        **changes,
    }
    return FinishedGeneration(**columns)


def finish(count: int = 1, **changes: Any) -> None:
    """Write rows of generations that ended alike."""
    FinishedGeneration.objects.bulk_create(finished(**changes) for _ in range(count))


def list_rows() -> list[tuple[Any, ...]]:
    """Return every row of totals, in the order of its key."""
    keys = ("period", "starts_at", "model", "is_chat", "outcome")
    sums = ("generations", "requested_tokens", "written_tokens", "milliseconds")
    return list(GenerationTotal.objects.order_by(*keys).values_list(*keys, *sums))


def told(*, is_chat: bool = False, now: datetime = NOW) -> dict[tuple[str, str | None], Total]:
    """Return the totals of one family by span and model."""
    return {(total.span, total.model): total for total in statistics.list_totals(is_chat=is_chat, now=now)}
