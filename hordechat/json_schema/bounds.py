"""What a judgement may take, and how it ends early."""

import time


class UnusableSchema(Exception):
    """The schema cannot be compiled, or leads to what is not there."""


class OutOfBounds(Exception):
    """The judgement takes more time or memory than it may."""


class Stopwatch:
    """What is left of the time of one judgement.

    It is a stop watch and no clock: no moment goes into a judgement, only how long it has taken.
    """

    __slots__ = ("_ends_at",)

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def get_seconds_left(self) -> float:
        """Return the time that is left.

        Raises:
            OutOfBounds: none is.
        """
        seconds = self._ends_at - time.monotonic()
        if seconds <= 0:
            raise OutOfBounds
        return seconds

    def check(self) -> None:
        """Do nothing while there is time left.

        Raises:
            OutOfBounds: none is.
        """
        if time.monotonic() >= self._ends_at:
            raise OutOfBounds
