"""How long code takes, in a unit of the same moment: machines differ, and a busy one is slow for everything."""

import time
from collections.abc import Callable

LOOP_STEPS = 1_000_000
"""Of the loop that is the unit: 30 to 60 ms on the machines of 2025."""
TRIES = 3


def loops_of(call: Callable[[], object], *, enough: float = 0.0) -> float:
    """Return the CPU time of a call, in runs of a fixed loop taken before and after it.

    The least of a few tries counts, since what disturbs only adds; a try of no more than `enough` loops ends them.
    """
    least = float("inf")
    for _ in range(TRIES):
        before = _loop_seconds()
        seconds = cpu_seconds_of(call)
        least = min(least, seconds / max(before, _loop_seconds()))
        if least <= enough:
            break
    return least


def cpu_seconds_of(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def _loop_seconds() -> float:
    return cpu_seconds_of(lambda: sum(step for step in range(LOOP_STEPS)))
