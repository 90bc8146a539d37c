"""Work a backlog off in bounded batches, each in a transaction of its own."""

import time
from collections.abc import Callable

RUN_SECONDS = 40.0
"""How long one run of a task goes on with full batches; the next run goes on where it stopped."""


def run_all(batch: Callable[[], int], *, full: int) -> int:
    """Repeat a batch until one comes back with less than `full` rows or the run's time is used; return all rows."""
    started_at = time.monotonic()
    rows = 0
    while True:
        done = batch()
        rows += done
        if done < full or time.monotonic() - started_at > RUN_SECONDS:
            return rows
