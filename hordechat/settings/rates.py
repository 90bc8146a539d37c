"""How rate limits are written in the environment: `5/second`, and `5/second;300/minute` for both at once."""

import re
from dataclasses import dataclass

SECONDS_BY_PERIOD = {"second": 1, "minute": 60, "hour": 60 * 60, "day": 24 * 60 * 60}
ADVICE = "has to look like 5/second or 5/second;300/minute, with the periods second, minute, hour and day"
_RATE = re.compile(r"(?P<count>[1-9][0-9]{0,8})/(?P<period>[a-z]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests in each period."""

    count: int
    period: str

    def __str__(self) -> str:
        return f"{self.count}/{self.period}"

    @property
    def seconds(self) -> int:
        """The length of the period."""
        return SECONDS_BY_PERIOD[self.period]


def parse(text: str) -> tuple[Rate, ...]:
    """Return each limit of a setting once, all of which hold.

    Raises:
        ValueError: any part is not `<count>/<period>`; nothing is guessed or left out.
    """
    rates: dict[Rate, None] = {}
    for part in text.split(";"):
        match = _RATE.fullmatch(part.strip())
        if match is None or match["period"] not in SECONDS_BY_PERIOD:
            raise ValueError(ADVICE)
        rates[Rate(int(match["count"]), match["period"])] = None
    return tuple(rates)
