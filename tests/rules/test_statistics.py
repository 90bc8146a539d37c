"""Statistics are about spans of time that hold each other, each summed from rows that are there and settled."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requests_app.rules.statistics import HOURS_KEPT, MINUTES_KEPT, SETTLING, Period, SpanName, list_spans

LENGTHS = {Period.MINUTE: timedelta(minutes=1), Period.HOUR: timedelta(hours=1)}


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-{text}+00:00")


@pytest.mark.parametrize(
    ("now", "minute", "hour", "day", "month"),
    [
        (
            "02T12:05:30",
            ("02T12:03:00", "02T12:04:00"),
            ("02T11:04:00", "02T12:04:00"),
            ("01T13:00:00", "02T13:00:00"),
            ("2026-01-31T13:00:00", "02T13:00:00"),
        ),
        (
            "02T12:05:00",
            ("02T12:03:00", "02T12:04:00"),
            ("02T11:04:00", "02T12:04:00"),
            ("01T13:00:00", "02T13:00:00"),
            ("2026-01-31T13:00:00", "02T13:00:00"),
        ),
        (
            "02T00:00:59.999",
            ("01T23:58:00", "01T23:59:00"),
            ("01T22:59:00", "01T23:59:00"),
            ("01T01:00:00", "02T01:00:00"),
            ("2026-01-31T01:00:00", "02T01:00:00"),
        ),
    ],
)
def test_the_spans_of_a_moment_are(
    now: str, minute: tuple[str, str], hour: tuple[str, str], day: tuple[str, str], month: tuple[str, str]
) -> None:
    spans = {span.name: span for span in list_spans(now=at(now))}

    assert list(spans) == list(SpanName)
    for name, period, (since, until) in (
        (SpanName.MINUTE, Period.MINUTE, minute),
        (SpanName.HOUR, Period.MINUTE, hour),
        (SpanName.DAY, Period.HOUR, day),
        (SpanName.MONTH, Period.HOUR, month),
    ):
        begins = datetime.fromisoformat(f"{since}+00:00") if since.startswith("2026") else at(since)
        assert (spans[name].period, spans[name].since, spans[name].until) == (period, begins, at(until))
    total = spans[SpanName.TOTAL]
    assert (total.period, total.since) == (Period.ALL, datetime(1970, 1, 1, tzinfo=UTC))


@given(now=st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis adds the zone
def test_each_span_holds_the_shorter_ones_and_its_rows_are_kept(now: datetime) -> None:
    minute, hour, day, month, total = list_spans(now=now)

    assert SETTLING <= now - minute.until < SETTLING + timedelta(minutes=1)
    for shorter, longer in ((minute, hour), (hour, day), (day, month), (month, total)):
        assert longer.since <= shorter.since
        assert shorter.until <= longer.until
    assert now - hour.since <= MINUTES_KEPT
    assert now - month.since <= HOURS_KEPT
    for span in (minute, hour, day, month):
        for edge in (span.since, span.until):
            assert (edge - datetime(1970, 1, 1, tzinfo=UTC)) % LENGTHS[span.period] == timedelta(0)
