"""Whether a value satisfies a JSON Schema, as far as the demo understands schemas.

A keyword that constrains a value and is not understood makes the answer unknown, never a guess. References lead to
places inside the schema; nothing is fetched.
"""

import operator
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from urllib.parse import unquote

from pydantic import JsonValue

from workers_app.bridge.json_schema import (
    NotUnderstood,
    Schema,
    find_number,
    item_schemas,
    member_schemas,
    read_list,
    read_names,
    read_types,
)

MAX_LEVELS = 80
"""Schemas that stand inside each other or refer to each other. Each takes a few frames of the interpreter's 1,000."""
ENTRIES_A_STEP = 4
"""What is looked at once, in lists and objects, for the price of one step."""
CHARACTERS_A_STEP = 64

NUMBER_BOUNDS: Mapping[str, Callable[[float, float], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
SIZE_BOUNDS: Mapping[type, tuple[str, str]] = {
    str: ("minLength", "maxLength"),
    list: ("minItems", "maxItems"),
    dict: ("minProperties", "maxProperties"),
}
BEYOND_ANYTHING = ("$dynamicRef", "$recursiveRef")
BEYOND_ARRAYS = ("contains", "unevaluatedItems")
BEYOND_OBJECTS = (
    "patternProperties", "unevaluatedProperties", "dependencies", "dependentRequired", "dependentSchemas",
)  # fmt: skip
"""Keywords that constrain values of a kind and are not understood."""

_INDEX = re.compile("0|[1-9][0-9]{0,8}")


class OutOfSteps(Exception):
    """The schema takes more work than it is given."""


def _types_of(value: JsonValue) -> tuple[str, ...]:
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return ("integer", "number")
    for kind, name in ((float, "number"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return (name,)
    return ("null",)


def _is_multiple(number: float, step: float) -> bool:
    # Floats are divided as validators divide them, though 0.3 is no multiple of 0.1 then: they judge the reply.
    if step <= 0:
        raise NotUnderstood
    try:
        return number % step == 0 if isinstance(step, int) else (number / step).is_integer()
    except OverflowError:
        return False


class Judge:
    """Judges by one schema and all that its references lead to, with a bound on the work it is worth."""

    def __init__(self, root: JsonValue, *, steps: int) -> None:
        self.root = root
        self._steps_left = steps
        self._matches: set[tuple[str, str]] = set()
        # By the id of a part of the schema, which outlives these.
        self._weights: dict[int, int] = {}
        self._enumerations: dict[int, frozenset[Hashable]] = {}

    def spend(self, steps: int = 1) -> None:
        """Take steps from those that are left.

        Raises:
            OutOfSteps: there are not as many.
        """
        self._steps_left -= steps
        if self._steps_left < 0:
            raise OutOfSteps

    def spend_on(self, schema: Schema) -> None:
        """Take the steps that reading a schema's own lists and objects takes, without what stands inside those.

        Raises:
            OutOfSteps: there are not as many.
        """
        if id(schema) not in self._weights:
            sizes = (len(value) for value in schema.values() if isinstance(value, list | dict))
            self._weights[id(schema)] = 1 + (len(schema) + sum(sizes)) // ENTRIES_A_STEP
        self.spend(self._weights[id(schema)])

    def canonical(self, value: JsonValue) -> Hashable:
        """Return what is equal for equal JSON values alone: 1 and 1.0 are, 1 and true are not.

        Raises:
            OutOfSteps: the value is too large.
        """
        if isinstance(value, bool):
            return ("boolean", value)
        if isinstance(value, list | dict):
            self.spend(1 + len(value) // ENTRIES_A_STEP)
        if isinstance(value, list):
            return ("array", tuple(map(self.canonical, value)))
        if isinstance(value, dict):
            return ("object", frozenset((name, self.canonical(member)) for name, member in value.items()))
        return value

    def admit_match(self, pattern: str, text: str) -> None:
        """Note that a text matches a pattern: no pattern is ever run, since some run for ever."""
        self._matches.add((pattern, text))

    def conjuncts(self, schema: Schema) -> Iterator[JsonValue]:
        """Yield the schemas that hold of a value wherever this one does: what it refers to, and its `allOf`.

        Raises:
            NotUnderstood: the reference leads nowhere, or outside.
        """
        if "$ref" in schema:
            yield self._resolve(schema["$ref"])
        yield from read_list(schema, "allOf")

    def holds(self, schema: JsonValue, value: JsonValue, *, levels: int = MAX_LEVELS) -> bool:
        """Return whether a value satisfies a schema.

        Raises:
            NotUnderstood: that cannot be said.
            OutOfSteps: it takes too much work.
        """
        if isinstance(schema, bool):
            self.spend()
            return schema
        # A reference that leads back to itself ends here too.
        if not isinstance(schema, dict) or not levels:
            raise NotUnderstood
        self.spend_on(schema)
        if not self._is_listed(schema, value) or not self._is_within(schema, value):
            return False
        inner = [(conjunct, value) for conjunct in self.conjuncts(schema)]
        inner += _inner_schemas(schema, value)
        if not all(self.holds(each, part, levels=levels - 1) for each, part in inner):
            return False
        if not self._holds_branches(schema, value, levels=levels - 1):
            return False
        self._require_understood(schema, value)
        return True

    def _resolve(self, reference: JsonValue) -> JsonValue:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise NotUnderstood
        place = self.root
        self.spend(len(reference) // CHARACTERS_A_STEP)
        for step in unquote(reference[1:]).split("/")[1:]:
            self.spend()
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and name in place:
                place = place[name]
            elif isinstance(place, list) and _INDEX.fullmatch(name) and int(name) < len(place):
                place = place[int(name)]
            else:
                raise NotUnderstood
        return place

    def _is_listed(self, schema: Schema, value: JsonValue) -> bool:
        types = read_types(schema)
        if types is not None and not any(name in types for name in _types_of(value)):
            return False
        if "const" in schema and self.canonical(schema["const"]) != self.canonical(value):
            return False
        return "enum" not in schema or self.canonical(value) in self._enumerated(schema)

    def _enumerated(self, schema: Schema) -> frozenset[Hashable]:
        if id(schema) not in self._enumerations:
            self._enumerations[id(schema)] = frozenset(map(self.canonical, read_list(schema, "enum")))
        return self._enumerations[id(schema)]

    def _is_within(self, schema: Schema, value: JsonValue) -> bool:
        """Return whether a value's size is within the bounds, and its members and items are those asked for."""
        if isinstance(value, bool) or value is None:
            return True
        if isinstance(value, int | float):
            bounds = ((find_number(schema, keyword), compare) for keyword, compare in NUMBER_BOUNDS.items())
            step = find_number(schema, "multipleOf")
            is_bounded = all(bound is None or compare(value, bound) for bound, compare in bounds)
            return is_bounded and (step is None or _is_multiple(value, step))
        least, most = (find_number(schema, keyword) for keyword in SIZE_BOUNDS[type(value)])
        if (least is not None and len(value) < least) or (most is not None and len(value) > most):
            return False
        if isinstance(value, dict):
            return all(name in value for name in read_names(schema, "required"))
        if isinstance(value, list) and schema.get("uniqueItems", False) is not False:
            return len(set(map(self.canonical, value))) == len(value)
        return True

    def _holds_branches(self, schema: Schema, value: JsonValue, *, levels: int) -> bool:
        def judge(keyword: str) -> Iterator[bool]:
            return (self.holds(branch, value, levels=levels) for branch in read_list(schema, keyword))

        if "anyOf" in schema and not any(judge("anyOf")):
            return False
        if "oneOf" in schema and sum(judge("oneOf")) != 1:
            return False
        if "not" in schema and self.holds(schema["not"], value, levels=levels):
            return False
        if "if" in schema:
            branch = "then" if self.holds(schema["if"], value, levels=levels) else "else"
            return self.holds(schema.get(branch, True), value, levels=levels)
        return True

    def _require_understood(self, schema: Schema, value: JsonValue) -> None:
        beyond: tuple[str, ...] = BEYOND_ANYTHING
        if isinstance(value, list):
            beyond += BEYOND_ARRAYS
        if isinstance(value, dict) and value:
            beyond += BEYOND_OBJECTS
        if isinstance(value, str) and "pattern" in schema and (schema["pattern"], value) not in self._matches:
            raise NotUnderstood
        # An identifier of its own makes references below it start there.
        identifier = schema.get("$id", "#")
        has_own_base = schema is not self.root and not (isinstance(identifier, str) and identifier.startswith("#"))
        if has_own_base or any(keyword in schema for keyword in beyond):
            raise NotUnderstood


def _inner_schemas(schema: Schema, value: JsonValue) -> Iterator[tuple[JsonValue, JsonValue]]:
    """Yield what is asked of the parts of a value, each with its part."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from ((each, member) for each in member_schemas(schema, name))
            if "propertyNames" in schema:
                yield schema["propertyNames"], name
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from ((each, item) for each in item_schemas(schema, index))
