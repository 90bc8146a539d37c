"""Roll finished generations up into totals, each exactly once, and forget totals nobody asks for any more."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

from django.db import transaction

from hordechat.infra import advisory_locks, batches, sql
from hordechat.infra.transactions import retry_on_conflict
from hordechat.model_reference import reference
from requests_app.rules.statistics import BEGINNING, HOURS_KEPT, MINUTES_KEPT, OTHER_MODELS

ROLL_UP_BATCH_ROWS = 5000
PRUNE_BATCH_ROWS = 10_000
"""A run sums one minute up or some more, and forgets as many rows as one minute may leave behind."""

LOCK = "roll up statistics"


@dataclass(frozen=True, kw_only=True)
class FinishedSum:
    """The row of `take_finished.sql`: what some finished generations of one minute add up to."""

    model: str
    is_chat: bool
    outcome: str
    minute: datetime
    generations: int
    requested_tokens: int
    written_tokens: int
    milliseconds: int


def roll_up_all(*, now: datetime) -> int:
    """Sum up every finished generation, batch by batch within a run's time, forget old totals, and return how many."""
    rows = batches.run_all(roll_up_batch, full=ROLL_UP_BATCH_ROWS)
    prune_batch(now=now)
    return rows


@retry_on_conflict
def roll_up_batch(*, limit: int = ROLL_UP_BATCH_ROWS) -> int:
    """Move one batch of finished generations into the totals, and return how many they were.

    They leave their table in the transaction that adds them up: one that is cut off has done neither. Two runs at once
    do the work of one: the second finds the advisory lock taken and does nothing.
    """
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock(LOCK):
            return 0
        sums = sql.fetch_all(sql.load(__file__, "take_finished.sql"), {"limit": limit}, FinishedSum)
        if sums:
            _add([replace(each, model=reference.find_listed_name(each.model) or OTHER_MODELS) for each in sums])
    return sum(each.generations for each in sums)


def _add(sums: Sequence[FinishedSum]) -> None:
    columns = {field.name: [getattr(each, field.name) for each in sums] for field in fields(FinishedSum)}
    sql.execute(sql.load(__file__, "add_totals.sql"), {**columns, "beginning": BEGINNING})


@retry_on_conflict
def prune_batch(*, now: datetime, limit: int = PRUNE_BATCH_ROWS) -> int:
    """Forget one batch of totals of minutes and hours that are past, and return how many they were."""
    with transaction.atomic(durable=True):
        if not advisory_locks.try_lock(LOCK):
            return 0
        return sql.execute(
            sql.load(__file__, "prune_totals.sql"),
            {"minutes_since": now - MINUTES_KEPT, "hours_since": now - HOURS_KEPT, "limit": limit},
        )
