"""Patterns of a client's schema: compiled once, and searched for no longer than a judgement may last.

A search can be given a time-out, compiling cannot, and the compiler writes a repeated group out as often as it must
occur: `(?:(?:a{9}){9}){9}` becomes 729 steps, and a hundred characters filled the memory of a machine. So patterns are
read here first, and refused where they would become too many steps. What ECMA-262, whose syntax schemas are meant to
use, and the standard library both lack is refused as well: comments, verbose patterns, recursion, fuzzy matching.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import BoundedSemaphore

import regex

from hordechat.contract.limits import MAX_SCHEMA_PATTERN_CHARACTERS, MAX_SCHEMA_PATTERN_STEPS
from hordechat.json_schema.bounds import OutOfBounds, Stopwatch, UnusableSchema

STEP_BYTES = 1500
"""What a step takes in memory at most; it takes about a microsecond to make."""

QUICK_SECONDS = 0.01
"""What a search may take while no other thread runs, which is cheaper than letting them."""
SEARCH_SECONDS = 0.1
"""What any search may take: a greedy one fills 700 MB of memory in a second, an ordinary one takes milliseconds."""

_long_searches = BoundedSemaphore(1)
"""One long search at a time in a process, for the same memory."""

_TOKEN = regex.compile(
    r"""(?sx)
      (?P<escape> \\ (?: [pP]\{[^{}]*+\} | . ) )
    | (?P<set> \[ \^?+ \]?+ (?: [^\]\\] | \\. )*+ \] )
    | (?P<flags> \A \( \? [aimsu]++ \) )
    | (?P<reference> \( \? P=\w++ \) )
    | (?P<opening> \( (?: \? (?: [:=!>] | <[=!] | P?<\w++> | [aimsu]*+ (?:-[ims]++)?+ : | \(\w++\) ) | (?![?*]) ) )
    | (?P<closing> \) )
    | (?P<repeat> (?: [*+?] | \{ (?: (?P<least>[0-9]++) (?P<most>,[0-9]*+)?+ | ,[0-9]*+ ) \} ) [?+]?+ )
    | (?P<character> [^\\\[(] )
    """
)
"""What a pattern consists of: flags at its beginning alone, since a repeat after others is one of what is before."""
_REPEAT_DIGITS = 6
_SET_BRACKETS = regex.compile(r"\\.|(?<!^)\[|(?<=^\[\^?)\]", regex.DOTALL)
"""Brackets in a set, of which this compiler may take one for the start of another set; escapes are passed over."""

_FAULTS = (regex.error, ValueError, OverflowError)


class Patterns:
    """The patterns of one schema, compiled when they are first needed."""

    def __init__(self) -> None:
        self._compiled: dict[str, regex.Pattern[str]] = {}
        self.steps = 0
        """What they were compiled to, together."""

    def compile(self, expression: object) -> regex.Pattern[str]:
        """Return a pattern.

        Raises:
            UnusableSchema: it is none, or it and those before it become too many steps.
            RecursionError: its brackets nest too deep.
        """
        if not isinstance(expression, str):
            raise UnusableSchema
        found = self._compiled.get(expression)
        if found is None:
            readable = read(expression)
            if self.steps + readable.steps > MAX_SCHEMA_PATTERN_STEPS:
                raise UnusableSchema
            try:
                found = regex.compile(readable.expression, cache_pattern=False)
            except _FAULTS as error:
                raise UnusableSchema from error
            self.steps += readable.steps
            self._compiled[expression] = found
        return found

    def is_found(self, expression: object, text: str, stopwatch: Stopwatch) -> bool:
        """Return whether a pattern is found anywhere in a text.

        Raises:
            OutOfBounds: the search takes too long.
            UnusableSchema: there is no such pattern.
        """
        pattern = self.compile(expression)
        try:
            seconds = min(QUICK_SECONDS, stopwatch.get_seconds_left())
            return pattern.search(text, timeout=seconds, concurrent=False) is not None
        except TimeoutError:
            return _search_long(pattern, text, stopwatch)
        except MemoryError as error:
            raise OutOfBounds from error


def _search_long(pattern: regex.Pattern[str], text: str, stopwatch: Stopwatch) -> bool:
    if not _long_searches.acquire(timeout=stopwatch.get_seconds_left()):
        raise OutOfBounds
    try:
        seconds = min(SEARCH_SECONDS, stopwatch.get_seconds_left())
        return pattern.search(text, timeout=seconds, concurrent=True) is not None
    except (TimeoutError, MemoryError) as error:
        raise OutOfBounds from error
    finally:
        _long_searches.release()


@dataclass(frozen=True, slots=True)
class ReadPattern:
    """A pattern as the compiler may have it, and the most steps it becomes."""

    expression: str
    steps: int


class _Count:
    """The steps of a group that is being read, and those of its last part, which a repeat belongs to."""

    __slots__ = ("last", "steps")

    def __init__(self) -> None:
        self.steps = 1
        self.last = 0

    def add(self, steps: int) -> None:
        self.steps += steps
        self.last = steps

    def repeat(self, times: int) -> None:
        self.steps += self.last * (times - 1)
        self.last *= times


def read(expression: str) -> ReadPattern:
    """Return a pattern without what only this compiler gives a meaning to, and count its steps.

    Raises:
        UnusableSchema: it is too long, would become too many steps or uses what is not read here.
    """
    if len(expression) > MAX_SCHEMA_PATTERN_CHARACTERS:
        raise UnusableSchema
    groups = [_Count()]
    pieces = []
    for token in _list_tokens(expression):
        piece = token[0]
        match token.lastgroup:
            case "opening":
                groups.append(_Count())
            case "closing":
                if len(groups) == 1:
                    raise UnusableSchema
                closed = groups.pop()
                groups[-1].add(closed.steps)
            case "repeat":
                groups[-1].repeat(_count_copies(token))
            case "set":
                piece = _SET_BRACKETS.sub(_escape, piece)
                groups[-1].add(1)
            case _:
                # An open brace that is no repeat would be fuzzy matching to this compiler.
                piece = r"\{" if piece == "{" else piece
                groups[-1].add(1)
        if groups[-1].steps > MAX_SCHEMA_PATTERN_STEPS:
            raise UnusableSchema
        pieces.append(piece)
    if len(groups) > 1:
        raise UnusableSchema
    return ReadPattern(expression="".join(pieces), steps=groups[0].steps)


def _list_tokens(expression: str) -> Iterator[regex.Match[str]]:
    position = 0
    while position < len(expression):
        token = _TOKEN.match(expression, position)
        if token is None:
            raise UnusableSchema
        yield token
        position = token.end()


def _escape(bracket: regex.Match[str]) -> str:
    return bracket[0] if len(bracket[0]) > 1 else f"\\{bracket[0]}"


def _count_copies(repeat: regex.Match[str]) -> int:
    """Return how often the compiler writes down what is repeated: each time it must occur, and once if it may."""
    symbol = repeat[0][0]
    if symbol != "{":
        return 2 if symbol == "+" else 1
    least = repeat["least"] or "0"
    if len(least) > _REPEAT_DIGITS:
        raise UnusableSchema
    is_open = repeat["most"] is not None and repeat["most"][1:].lstrip("0") != least.lstrip("0")
    return max(1, int(least) + (1 if is_open else 0))
