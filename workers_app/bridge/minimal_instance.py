"""A small value for a JSON Schema: built from the keywords read here, then judged once by what judges replies.

A keyword that is not read here is left to chance and to that judge: a value may be missed, and is never wrong.
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from pydantic import JsonValue

from hordechat.contract.vocabulary import FaultReason
from hordechat.json_schema.bounds import OutOfBounds, Stopwatch
from hordechat.json_schema.judging import SchemaVerdict, judge
from workers_app.bridge.values import GenerationFailed

Schema = dict[str, JsonValue]

MAX_SECONDS = 0.5
"""For building and judging together, in which the bridge does nothing else."""
MAX_STEPS = 20_000
"""Schemas looked at, which bounds the memory; one of 500 members takes a few thousand."""
CHARACTERS_A_STEP = 64
MAX_DEPTH = 20

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "null": type(None),
}  # fmt: skip
"""In the order in which they are tried where a schema names none."""
FORMATS: Mapping[str, str] = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "email": "demo@example.org",
    "uri": "https://example.org",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
"""An example of each of the common formats, which nobody judges by, but who reads the reply may rely on."""

COMBINING = ("$ref", "allOf", "anyOf", "oneOf")


class _Unbuildable(Exception):
    """A schema has no value that could be built, or none within the depth."""


def write(schema: JsonValue, *, max_characters: int) -> str:
    """Return a small instance of a schema as JSON, an object where one can be built.

    Raises:
        GenerationFailed: none was found in time and within `max_characters`.
    """
    stopwatch = Stopwatch(MAX_SECONDS)
    try:
        value = _Builder(schema, max_characters, stopwatch).find()
        text = _dump(value, max_characters=max_characters)
        seconds = stopwatch.get_seconds_left()
    except (_Unbuildable, OutOfBounds, RecursionError, ArithmeticError, ValueError):
        # The last two stand for numbers that cannot be reckoned with or written down, and for half a surrogate pair.
        raise GenerationFailed(FaultReason.UNBUILDABLE_GRAMMAR, "no value could be built for the schema") from None
    if not isinstance(schema, dict) or judge(schema, value, seconds=seconds) is not SchemaVerdict.MATCHES:
        raise GenerationFailed(FaultReason.UNBUILDABLE_GRAMMAR, "the value built does not match the schema")
    return text


def _dump(value: JsonValue, *, max_characters: int) -> str:
    """Return a value as JSON, whole or not at all."""
    text = ""
    # Piece by piece, or a long constant that is repeated often would fill the memory.
    for piece in json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).iterencode(value):
        text += piece
        if len(text) > max_characters:
            raise _Unbuildable
    text.encode()
    return text


@dataclass
class _Builder:
    """Builds a value for one schema, in a bounded number of steps."""

    root: JsonValue
    max_characters: int
    stopwatch: Stopwatch
    steps_left: int = MAX_STEPS

    def find(self) -> JsonValue:
        """Return an object if there is one, else any value; of several branches, the one that ends soonest."""
        as_object: Schema = {"allOf": [self.root, {"type": "object"}]}
        for schema in (as_object, self.root):
            for depth in range(MAX_DEPTH + 1):
                with suppress(_Unbuildable):
                    return self._build(schema, depth)
        raise _Unbuildable

    def _build(self, schema: JsonValue, depth: int) -> JsonValue:
        """Return the first value there is, nested at most `depth` levels."""
        if depth < 0:
            raise _Unbuildable
        for way in self._list_ways(schema):
            for kind in _list_types(way):
                with suppress(_Unbuildable):
                    return self._make(kind, way, depth)
        raise _Unbuildable

    def _list_ways(self, schema: JsonValue) -> Iterator[Schema]:
        """Yield the schema with what it refers to and one branch of each choice in it, for all choices in order."""
        self._spend()
        if schema is True:
            yield {}
        if isinstance(schema, dict):
            choices = [[self._follow(schema["$ref"])]] if "$ref" in schema else []
            choices += [[each] for each in _read_list(schema, "allOf")]
            choices += [_read_list(schema, keyword) for keyword in ("anyOf", "oneOf") if keyword in schema]
            own = {keyword: value for keyword, value in schema.items() if keyword not in COMBINING}
            yield from self._choose(own, choices)

    def _choose(self, own: Schema, choices: list[list[JsonValue]]) -> Iterator[Schema]:
        if not choices:
            yield own
            return
        for branch in choices[0]:
            for way in self._list_ways(branch):
                yield from self._choose(_merge(own, way), choices[1:])

    def _follow(self, reference: JsonValue) -> JsonValue:
        """Return the place inside the schema that a reference leads to."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise _Unbuildable
        place = self.root
        for step in unquote(reference).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and name in place:
                place = place[name]
            elif isinstance(place, list) and name.isdecimal() and int(name) < len(place):
                place = place[int(name)]
            else:
                raise _Unbuildable
        return place

    def _make(self, kind: str, schema: Schema, depth: int) -> JsonValue:
        if "const" in schema or "enum" in schema:
            listed = [schema["const"]] if "const" in schema else _read_list(schema, "enum")
            for value in listed:
                if isinstance(value, TYPES[kind]):
                    return value
            raise _Unbuildable
        match kind:
            case "object":
                return self._make_object(schema, depth)
            case "array":
                return self._make_array(schema, depth)
            case "string":
                return self._make_text(schema)
            case "integer" | "number":
                return _make_number(schema, is_whole=kind == "integer")
            case "boolean":
                return False
            case _:
                return None

    def _make_object(self, schema: Schema, depth: int) -> JsonValue:
        """Return the required members alone, in the order in which they are described."""
        described = schema.get("properties")
        members = described if isinstance(described, dict) else {}
        required = dict.fromkeys(name for name in _read_list(schema, "required") if isinstance(name, str))
        names = [*(name for name in members if name in required), *(name for name in required if name not in members)]
        others = schema.get("additionalProperties", True)
        return {name: self._build(members.get(name, others), depth - 1) for name in names}

    def _make_array(self, schema: Schema, depth: int) -> JsonValue:
        items: list[JsonValue] = []
        first = _read_list(schema, "prefixItems")
        while len(items) < _read_number(schema, "minItems", 0):
            asked = first[len(items)] if len(items) < len(first) else schema.get("items", True)
            items.append(self._build(asked, depth - 1))
        return items

    def _make_text(self, schema: Schema) -> JsonValue:
        least = math.ceil(_read_number(schema, "minLength", 0))
        if least > self.max_characters:
            raise _Unbuildable
        self._spend(least // CHARACTERS_A_STEP)
        example = FORMATS.get(str(schema.get("format")), "")
        is_fitting = least <= len(example) <= _read_number(schema, "maxLength", math.inf)
        return example if is_fitting else "x" * least

    def _spend(self, steps: int = 1) -> None:
        self.stopwatch.check()
        self.steps_left -= steps
        if self.steps_left < 0:
            raise OutOfBounds


def _make_number(schema: Schema, *, is_whole: bool) -> JsonValue:
    """Return a number as near to zero as the bounds admit: a multiple, a bound, or what is half-way between those."""
    least, above = (_read_number(schema, keyword, -math.inf) for keyword in ("minimum", "exclusiveMinimum"))
    most, below = (_read_number(schema, keyword, math.inf) for keyword in ("maximum", "exclusiveMaximum"))
    low, high = max(least, above), min(most, below)
    nearest = min(max(0, low), high)
    step = _read_number(schema, "multipleOf", 1)
    multiples = [step * (nearest // step + each) for each in (0, 1, 2, -1)]
    for number in (*multiples, nearest, (low + high) / 2):
        if least <= number <= most and above < number < below:
            if number == int(number):
                return int(number)
            if not is_whole:
                return number
    raise _Unbuildable


def _merge(one: Schema, other: Schema) -> Schema:
    both = {keyword: _agree(keyword, one[keyword], other[keyword]) for keyword in one if keyword in other}
    return {**one, **other, **both}


def _agree(keyword: str, one: JsonValue, other: JsonValue) -> JsonValue:
    """Return what a keyword says that stands in two schemas; where they cannot be reconciled, what the other says."""
    match keyword, one, other:
        case "type", _, _:
            return [kind for kind in _list_types({"type": one}) if kind in _list_types({"type": other})]
        case "required", list(), list():
            return [*one, *other]
        case "properties", dict(), dict():
            return {**one, **other, **{name: {"allOf": [one[name], other[name]]} for name in one if name in other}}
        case "minimum" | "exclusiveMinimum" | "minLength" | "minItems", int() | float(), int() | float():
            return max(one, other)
        case "maximum" | "exclusiveMaximum" | "maxLength", int() | float(), int() | float():
            return min(one, other)
    return other


def _list_types(schema: Schema) -> list[str]:
    named = schema.get("type", list(TYPES))
    kinds = dict.fromkeys(each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str))
    # A whole number is a number too.
    return [kind for each in kinds for kind in (["number", "integer"] if each == "number" else [each]) if kind in TYPES]


def _read_list(schema: Schema, keyword: str) -> list[JsonValue]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _read_number(schema: Schema, keyword: str, default: float) -> float:
    value = schema.get(keyword)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return default
    return value
