"""The one place the wall clock is read; views, tasks and commands read it once and pass `now` down."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(tz=UTC)
