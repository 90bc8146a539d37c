"""Take calls from budgets: counts of fixed windows in Redis, kept by django-ratelimit.

Every call counts, the refused too. Without Redis nothing is counted and nobody is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.http import HttpRequest
from django_ratelimit.core import get_usage
from redis import ConnectionError as RedisConnectionError

from hordechat.http.rate_limits.rules import Budget
from hordechat.infra import redis


@dataclass(frozen=True, slots=True)
class Usage:
    """How a budget stands after a call."""

    budget: Budget
    count: int
    seconds_left: int
    """Until its window ends, at least 1."""

    @property
    def is_exceeded(self) -> bool:
        """Whether the call was one too many."""
        return self.count > self.budget.rate.count

    @property
    def remaining(self) -> int:
        """How many more calls the window takes."""
        return max(self.budget.rate.count - self.count, 0)

    def headers(self, now: datetime) -> dict[str, str]:
        """Return what tells a client how the budget stands."""
        return {
            "X-RateLimit-Limit": str(self.budget.rate.count),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(int(now.timestamp()) + self.seconds_left),
            "Retry-After": str(self.seconds_left),
        }


def spend(request: HttpRequest, budgets: Sequence[Budget]) -> Usage | None:
    """Take one call from every budget, and return the one that decides; None when none could be counted.

    Of exceeded budgets that is the one that stays so for longest, else the one with the fewest calls left.
    """
    taken = [redis.best_effort("rate limit", partial(_take, request, budget)) for budget in budgets]
    usages = [usage for usage in taken if usage is not None]
    exceeded = [usage for usage in usages if usage.is_exceeded]
    if exceeded:
        return max(exceeded, key=lambda usage: usage.seconds_left)
    return min(usages, key=lambda usage: (usage.remaining, -usage.seconds_left), default=None)


def _take(request: HttpRequest, budget: Budget) -> Usage:
    usage = get_usage(
        request,
        group=f"{budget.method} {budget.route} ",
        key=lambda *_: f" {budget.caller} {budget.holder} ",
        rate=(budget.rate.count, budget.rate.seconds),
        increment=True,
    )
    if usage is None:
        # The cache keeps its errors to itself, and only the missing count tells of one.
        raise RedisConnectionError("no count came back")
    # The window's last second is a part of it.
    return Usage(budget=budget, count=usage["count"], seconds_left=max(usage["time_left"] + 1, 1))
