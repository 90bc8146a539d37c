"""Whether a reply's JSON is what the client's JSON Schema asks for.

Both come from strangers: schema and reply may be made to take all time and memory there is. A judgement ends within
bounds, in any thread, with nothing but a verdict.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from threading import Lock
from typing import Literal, NoReturn

from jsonschema.exceptions import UndefinedTypeCheck
from referencing.exceptions import Unresolvable

from hordechat.contract.limits import MAX_REPLY_NESTING, MIB, SCHEMA_SECONDS
from hordechat.json_schema.bounds import OutOfBounds, Stopwatch, UnusableSchema
from hordechat.json_schema.compiler import CompiledSchema, compile_schema

KEPT_BYTES = 32 * MIB
"""What all compiled schemas a process keeps may take."""
MOST_KEPT_BYTES_OF_ONE = KEPT_BYTES // 4
ALWAYS_JUDGED_NESTING = 60
"""A reply nested no deeper has room on the stack under any ordinary schema; where not, the schema is at fault."""


class SchemaVerdict(StrEnum):
    """What can be said of a value and a schema."""

    MATCHES = "matches"
    DIFFERS = "differs"
    UNUSABLE = "unusable"
    """The schema cannot be compiled, has a reference that leads nowhere, or takes too long."""


class NotJson(ValueError):
    """A text is no JSON, or nests too deep to be looked at."""


# What the library and its helpers raise, beside what ends a judgement: for a schema its metaschema lets pass, since
# that does not see what a reference may lead to, and for numbers it cannot reckon with.
_FAULTS = (
    UnusableSchema, OutOfBounds, UndefinedTypeCheck, Unresolvable, ValueError, TypeError, LookupError, AttributeError,
    ArithmeticError, MemoryError,
)  # fmt: skip


def parse_json(text: str) -> object:
    """Return the value of a JSON text.

    Raises:
        NotJson: it has none: `NaN` and the infinities are no JSON, nor is what nests deeper than a reply may.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotJson from error
    # Few brackets are not looked through.
    if text.count("[") + text.count("{") > MAX_REPLY_NESTING and _nests_deeper(value, MAX_REPLY_NESTING):
        raise NotJson
    return value


def judge(schema: Mapping[str, object], value: object, *, seconds: float = SCHEMA_SECONDS) -> SchemaVerdict:
    """Return whether a value, such as `parse_json` makes, is what a schema of any draft asks for.

    It follows the draft named in `$schema`, 2020-12 if that is none we know. Formats are not looked at. References lead
    nowhere but into the schema itself. What takes longer than it may is unusable; a value that nests deeper than there
    is room for on the stack differs.
    """
    stopwatch = Stopwatch(seconds)
    try:
        with _raising_panics():
            compiled = _find_compiled(schema, stopwatch)
    except (*_FAULTS, RecursionError):
        return SchemaVerdict.UNUSABLE
    if compiled is SchemaVerdict.UNUSABLE:
        return compiled
    try:
        with _raising_panics():
            is_valid = compiled.start(stopwatch).is_valid(value)
    except RecursionError:
        return SchemaVerdict.DIFFERS if _nests_deeper(value, ALWAYS_JUDGED_NESTING) else SchemaVerdict.UNUSABLE
    except _FAULTS:
        return SchemaVerdict.UNUSABLE
    return SchemaVerdict.MATCHES if is_valid else SchemaVerdict.DIFFERS


@contextmanager
def _raising_panics() -> Iterator[None]:
    """Raise as `RecursionError` what the maps that references are looked up in make of a full stack.

    They are written in Rust, and their panic is a `BaseException`, which would end more than a judgement.
    """
    try:
        yield
    except BaseException as error:
        # There is no module the class could be imported from.
        if type(error).__name__ == "PanicException":
            raise RecursionError from error
        raise


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is no JSON")


def _nests_deeper(value: object, levels: int) -> bool:
    """Return whether a value has containers in each other on more than so many levels."""
    level: Iterable[object] = [value]
    for _ in range(levels + 1):
        containers = [each for each in level if isinstance(each, dict | list)]
        if not containers:
            return False
        level = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in containers)
    return True


_Outcome = CompiledSchema | Literal[SchemaVerdict.UNUSABLE]


class _Shelf:
    """Compiled schemas by their JSON, those used last as far as there is room; also those that cannot be compiled."""

    def __init__(self) -> None:
        self._outcomes: OrderedDict[str, tuple[_Outcome, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def find(self, text: str) -> _Outcome | None:
        with self._lock:
            found = self._outcomes.get(text)
            if found is None:
                return None
            self._outcomes.move_to_end(text)
            return found[0]

    def keep(self, text: str, outcome: _Outcome) -> None:
        size = outcome.bytes if isinstance(outcome, CompiledSchema) else len(text)
        if size > MOST_KEPT_BYTES_OF_ONE:
            return
        with self._lock:
            _, replaced = self._outcomes.pop(text, (None, 0))
            self._outcomes[text] = outcome, size
            self._bytes += size - replaced
            while self._bytes > KEPT_BYTES:
                _, (_, dropped) = self._outcomes.popitem(last=False)
                self._bytes -= dropped


_shelf = _Shelf()


def _find_compiled(schema: Mapping[str, object], stopwatch: Stopwatch) -> _Outcome:
    """Return a schema compiled, if it can be: a time-out and a full stack say nothing of it and are not kept."""
    text = json.dumps(schema, sort_keys=True, separators=(",", ":"))
    outcome = _shelf.find(text)
    if outcome is None:
        try:
            outcome = compile_schema(text, stopwatch)
        except (OutOfBounds, MemoryError):
            raise
        except _FAULTS:
            outcome = SchemaVerdict.UNUSABLE
        _shelf.keep(text, outcome)
    return outcome
