"""What finished generations add up to within the last minute, hour, day, 30 days, and in all."""

from dataclasses import dataclass
from datetime import datetime

from hordechat.infra import sql
from requests_app.rules.statistics import list_spans


@dataclass(frozen=True, kw_only=True)
class Total:
    """The row of `totals.sql`: what was done within a span."""

    span: str
    """A value of `SpanName`."""
    model: str | None
    """None: all models together."""
    replies: int
    cancelled: int
    faulted: int
    requested_tokens: int
    written_tokens: int
    milliseconds: int

    @property
    def tokens_per_second(self) -> float:
        """How fast a generation was written in the mean; 0 when none was."""
        return 1000 * self.written_tokens / self.milliseconds if self.milliseconds else 0.0


def list_totals(*, is_chat: bool, now: datetime) -> list[Total]:
    """Return the totals of one family: of each span, the shortest first, all models together and then each model.

    Generations that ended since the last roll-up are not in them yet.
    """
    spans = list_spans(now=now)
    return sql.fetch_all(
        sql.load(__file__, "totals.sql"),
        {
            "names": [span.name.value for span in spans],
            "periods": [span.period.value for span in spans],
            "since": [span.since for span in spans],
            "until": [span.until for span in spans],
            "is_chat": is_chat,
        },
        Total,
    )
