"""How far a request has come, derived from counts of its generations: the one place that says when it is done (S1)."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a request has cost by now, the tax included, and what is held for it."""

    consumed_kudos: Decimal
    upfront_kudos: Decimal | None
    """None when nothing was held."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What decides whether a request is done; fake generations are left out of the counts."""

    jobs: int
    waiting: int
    """Slots nobody took yet."""
    in_flight: int
    """Generations handed out, neither stored nor faulted."""
    stored: int
    is_faulted: bool
    is_cancelled: bool

    @property
    def is_done(self) -> bool:
        """Whether nothing more will come (FLW-06..09)."""
        if self.is_faulted:
            return True
        return self.waiting == 0 and self.in_flight == 0 and (self.stored >= self.jobs or self.is_cancelled)
