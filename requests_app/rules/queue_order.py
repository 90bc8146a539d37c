"""A request's place in the queue: one number, fixed when it is activated."""

import math
from datetime import datetime
from decimal import Decimal

AGEING_SECONDS = 10
AGEING_POINTS = 50
"""Every waiting request gains 50 points each 10 seconds: said as a difference, it never changes (decision Q1)."""


def order_key(*, balance: Decimal, activated_at: datetime) -> int:
    """Return the key, larger first: the balance at activation, less what later requests have not gained yet."""
    return math.floor(balance) - AGEING_POINTS * math.floor(activated_at.timestamp() / AGEING_SECONDS)
