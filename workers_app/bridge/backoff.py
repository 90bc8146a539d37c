"""How long to wait before the next attempt."""

import random

FIRST_DELAY_SECONDS = 1.0
MAX_DELAY_SECONDS = 60.0
MAX_RETRY_AFTER_SECONDS = 300.0

_random: random.Random = random.SystemRandom()


def jitter(seconds: float) -> float:
    """Spread a pause by a quarter either way, so that many workers do not call at the same moment."""
    return seconds * _random.uniform(0.75, 1.25)


def delay_seconds(failures: int, retry_after_seconds: float | None = None) -> float:
    """Return the pause after the given number of failures in a row; one the server asked for is kept, up to a bound."""
    if retry_after_seconds is not None:
        return min(retry_after_seconds, MAX_RETRY_AFTER_SECONDS) + _random.uniform(0, 0.25)
    longest = min(FIRST_DELAY_SECONDS * 2.0 ** min(max(failures - 1, 0), 10), MAX_DELAY_SECONDS)
    return longest * _random.uniform(0.5, 1)
