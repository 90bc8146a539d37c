"""What statistics are kept by, and which stretch of time each figure is about."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

OTHER_MODELS = "other"
"""Stands for every model the reference does not list: workers may name theirs as they like, without end."""


class GenerationOutcome(StrEnum):
    """How a generation ended."""

    OK = "ok"
    """Its reply was stored."""
    CANCELLED = "cancelled"
    """Its reply was stored, and its client had cancelled meanwhile."""
    FAULTED = "faulted"
    """It gave no reply: its worker gave it up, or its lease lapsed."""


class Period(StrEnum):
    """What a row of totals sums up: one minute, one hour, or everything."""

    MINUTE = "minute"
    HOUR = "hour"
    ALL = "all"


BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""Where the one period of all time begins."""

MINUTES_KEPT = timedelta(hours=2)
HOURS_KEPT = timedelta(days=31)


class SpanName(StrEnum):
    """A stretch of time that figures are given for."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"


SETTLING = timedelta(minutes=1)
"""A minute is summed up by the next run of the roll-up, which comes once a minute."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of time, and its rows of totals: those of a period that begin at `since` or later, before `until`."""

    name: SpanName
    period: Period
    since: datetime
    until: datetime


def list_spans(*, now: datetime) -> tuple[Span, ...]:
    """Return the stretches of time that figures are given for.

    Minute and hour are whole minutes that are settled: they end one to two minutes ago. Day and month are whole hours
    and the one that runs. So each span holds everything the shorter ones do.
    """
    settled_at = now.replace(second=0, microsecond=0) - SETTLING
    next_hour = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return tuple(
        Span(name=name, period=period, since=until - length, until=until)
        for name, period, length, until in (
            (SpanName.MINUTE, Period.MINUTE, timedelta(minutes=1), settled_at),
            (SpanName.HOUR, Period.MINUTE, timedelta(hours=1), settled_at),
            (SpanName.DAY, Period.HOUR, timedelta(days=1), next_hour),
            (SpanName.MONTH, Period.HOUR, timedelta(days=30), next_hour),
            (SpanName.TOTAL, Period.ALL, next_hour - BEGINNING, next_hour),
        )
    )


assert timedelta(hours=1) + 2 * SETTLING <= MINUTES_KEPT, "the hour's minutes are there"
assert timedelta(days=30) <= HOURS_KEPT, "the month's hours are there"
