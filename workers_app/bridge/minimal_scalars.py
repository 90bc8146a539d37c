"""Texts and numbers worth judging by a JSON Schema, the smallest first; some of them may not satisfy it."""

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from workers_app.bridge import minimal_pattern
from workers_app.bridge.json_schema import NotUnderstood, Parts, find_number, greatest
from workers_app.bridge.schema_judge import Judge

MULTIPLES_TRIED = 32
TEXTS_TRIED = 4
CHARACTERS_A_STEP = 16

FORMATS: Mapping[str, str] = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "duration": "P1D",
    "email": "demo@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "00:00:00Z",
    "uri": "https://example.org",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
"""An example of each of the common formats. Validators need not look at them; who reads the reply may."""


def texts(parts: Parts, *, judge: Judge, longest: int, spare: int) -> Iterator[str]:
    """Yield texts as short as the parts admit; the judge is told of those that were written from a pattern.

    `spare` is how many may be refused for another reason.
    """
    least = math.ceil(greatest(parts, "minLength"))
    if least > longest:
        return
    judge.spend(1 + least // CHARACTERS_A_STEP)
    patterns = [pattern for part in parts if isinstance(pattern := part.get("pattern"), str)]
    for pattern in patterns:
        judge.spend(len(pattern) // CHARACTERS_A_STEP)
        text = minimal_pattern.find(pattern, least=least, most=longest)
        if text is not None:
            judge.admit_match(pattern, text)
            yield text
    yield from (FORMATS[name] for part in parts if isinstance(name := part.get("format"), str) and name in FORMATS)
    yield "x" * least
    yield from (str(number).rjust(least, "x") for number in range(TEXTS_TRIED + spare))


def numbers(parts: Parts, *, is_whole: bool, spare: int) -> Iterator[int | float]:
    """Yield numbers near zero that the bounds admit most likely: multiples, then the bounds and what is between."""
    bounds = {
        keyword: [_exact(bound) for part in parts if (bound := find_number(part, keyword)) is not None]
        for keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
    }
    least = max(bounds["minimum"] + bounds["exclusiveMinimum"], default=None)
    most = min(bounds["maximum"] + bounds["exclusiveMaximum"], default=None)
    steps = bounds["multipleOf"]
    step = Fraction(1)
    if any(each <= 0 for each in steps):
        raise NotUnderstood
    if steps:
        are_whole = all(each.denominator == 1 for each in steps)
        step = Fraction(math.lcm(*(each.numerator for each in steps))) if are_whole else steps[0]
    tried = range(MULTIPLES_TRIED + spare)
    if least is not None and least > 0:
        multiples = [math.ceil(least / step) + each for each in tried]
    elif most is not None and most < 0:
        multiples = [math.floor(most / step) - each for each in tried]
    else:
        multiples = [sign * each for each in tried for sign in (1, -1)]
    yield from _written(step * each for each in dict.fromkeys(multiples))
    if not is_whole and not steps:
        half = Fraction(1, 2)
        ends = [end for end in (least, most) if end is not None]
        yield from _written([*ends, sum(ends, Fraction(0)) / 2, half, *(end + half for end in ends)])


def _exact(number: float) -> Fraction:
    # By its decimal digits: the float 0.1 is meant to be a tenth.
    return Fraction(number) if isinstance(number, int) else Fraction(str(number))


def _written(numbers: Iterable[Fraction]) -> Iterator[int | float]:
    for number in numbers:
        try:
            yield number.numerator if number.denominator == 1 else float(number)
        except OverflowError:
            continue
