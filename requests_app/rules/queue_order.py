"""A request's place in the queue: one number, fixed when it is activated."""

import math
from datetime import datetime
from decimal import Decimal

AGEING_SECONDS = 10
AGEING_POINTS = 50
"""Every waiting request gains 50 points each 10 seconds: said as a difference, it never changes (decision Q1)."""


FLAGGED_KUDOS = 10
"""Up to this balance a flagged user's requests come last."""
FLAGGED_SEED = -100
FLAGGED_KUDOS_PER_POINT = 1000
DOWNGRADED_SEED = -50
"""Where a request begins that was lowered because its kudos could not be held."""


def seed_of(*, balance: Decimal, is_flagged: bool = False, is_downgraded: bool = False) -> int:
    """Return where a request begins among those activated at the same moment (text-path 4.3)."""
    if is_flagged:
        return round(balance / FLAGGED_KUDOS_PER_POINT) if balance > FLAGGED_KUDOS else FLAGGED_SEED
    return DOWNGRADED_SEED if is_downgraded else math.floor(balance)


def order_key(*, seed: int, activated_at: datetime) -> int:
    """Return the key, larger first: the seed, less what later requests have not gained yet."""
    return seed - AGEING_POINTS * math.floor(activated_at.timestamp() / AGEING_SECONDS)
