"""The free output allowance: how long an output may be without its kudos being held first."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AllowanceCurve:
    """The operator's curve from the estimated wait to the allowance: flat, falling, flat."""

    ceiling_tokens: int = 4096
    """What an idle fleet serves free."""
    floor_tokens: int = 512
    """What stays free under any load."""
    full_wait_seconds: float = 60
    """A queue that clears within it keeps the ceiling, however many requests it holds."""
    floor_wait_seconds: float = 300
    """From this wait on the floor is left."""

    def __post_init__(self) -> None:
        """Refuse a curve that rises or has no slope.

        Raises:
            ValueError: the floor is above the ceiling, or the waits are not in order.
        """
        if self.floor_tokens > self.ceiling_tokens:
            raise ValueError("The allowance's floor has to be at most its ceiling.")
        if self.floor_wait_seconds <= self.full_wait_seconds:
            raise ValueError("The wait of the allowance's floor has to be above the wait of its ceiling.")

    def tokens_at(self, wait_seconds: float | None) -> int:
        """Return the allowance behind this estimated wait; None when no worker could serve the request."""
        if wait_seconds is None or wait_seconds >= self.floor_wait_seconds:
            return self.floor_tokens
        if wait_seconds <= self.full_wait_seconds:
            return self.ceiling_tokens
        fall_tokens = (
            (self.ceiling_tokens - self.floor_tokens)
            * (wait_seconds - self.full_wait_seconds)
            / (self.floor_wait_seconds - self.full_wait_seconds)
        )
        return round(self.ceiling_tokens - fall_tokens)
