"""A small value that satisfies a JSON Schema, found by trying: as shallow as possible, then the first branch that fits.

Whatever is found has been judged by the whole schema before it is returned. The work is bounded; where it does not
suffice there is no value, and never a wrong one.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from hordechat.contract.vocabulary import FaultReason
from workers_app.bridge import minimal_scalars
from workers_app.bridge.json_schema import (
    TYPES,
    NotUnderstood,
    Parts,
    Schema,
    greatest,
    item_schemas,
    member_schemas,
    read_members,
    read_names,
    read_types,
    read_values,
)
from workers_app.bridge.schema_judge import ENTRIES_A_STEP, Judge, OutOfSteps
from workers_app.bridge.values import GenerationFailed

MAX_STEPS = 20_000
"""Some tenths of a second, in which the bridge does nothing else. A schema of 1,000 members takes a third of them."""
MAX_DEPTH = 20
MAX_CHOICES = 40

OBJECT: Schema = {"type": "object"}
HINTS: Mapping[str, str] = {
    "properties": "object",
    "required": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "minLength": "string",
    "maxLength": "string",
    "pattern": "string",
    "format": "string",
    "minimum": "number",
    "exclusiveMinimum": "number",
    "maximum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}
"""What a schema without a type means, most likely, by the keyword it has."""

Found = tuple[JsonValue] | None
"""A value, which may be null, or nothing."""


def write(schema: JsonValue, *, max_characters: int) -> str:
    """Return a small instance of a schema as JSON, an object where the schema admits one.

    Raises:
        GenerationFailed: none was found, or it is longer than `max_characters`.
    """
    found = _find(schema, max_characters=max_characters)
    if found is None:
        raise GenerationFailed(FaultReason.UNBUILDABLE_GRAMMAR, "no value that satisfies the schema was found")
    try:
        text = json.dumps(found[0], ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError):
        # A constant of the schema that JSON has no word for, that is nested without end, or half a surrogate pair,
        # which would arrive as a question mark.
        raise GenerationFailed(FaultReason.UNBUILDABLE_GRAMMAR, "the schema holds a value that is not JSON") from None
    if len(text) > max_characters:
        # Cut, it would break the format. Of the reasons this one fits best: within the length, nothing satisfies the
        # schema. The prompt is not too long and no reply broke a rule; `generation_error` would rest a sound backend.
        raise GenerationFailed(
            FaultReason.UNBUILDABLE_GRAMMAR, f"the value has {len(text)} characters of {max_characters}"
        )
    return text


def _find(root: JsonValue, *, max_characters: int) -> Found:
    search = _Search(Judge(root, steps=MAX_STEPS), max_characters)
    try:
        for schemas in ((root, OBJECT), (root,)):
            # Depth by depth, so that of two branches the one that ends is found before the one that goes on.
            for depth in range(MAX_DEPTH + 1):
                if (found := search.find(schemas, depth)) is not None:
                    return found
    except (OutOfSteps, RecursionError):
        return None
    return None


class _Search:
    """One search; what was found or not found for the same schemas at the same depth is remembered."""

    def __init__(self, judge: Judge, max_characters: int) -> None:
        self._judge = judge
        self._max_characters = max_characters
        self._known: dict[tuple[tuple[int, ...], int], Found] = {}

    def find(self, schemas: tuple[JsonValue, ...], depth: int, *, taken: Sequence[JsonValue] = ()) -> Found:
        """Return a value all the schemas hold of, nested at most `depth` levels and none of those taken."""
        self._judge.spend(1 + len(taken) // ENTRIES_A_STEP)
        parts = self._flatten(schemas) if depth >= 0 else None
        if parts is None:
            return None
        # The parts belong to the schema, which outlives the search: no two ever share an id.
        key = (tuple(map(id, parts)), depth)
        if taken or key not in self._known:
            found = self._try_all(schemas, parts, depth, taken)
            if taken:
                return found
            self._known[key] = found
        return self._known[key]

    def _try_all(self, schemas: tuple[JsonValue, ...], parts: Parts, depth: int, taken: Sequence[JsonValue]) -> Found:
        refused = {self._judge.canonical(value) for value in taken}
        for alternative in self._alternatives(parts, frozenset()):
            try:
                for value in self._candidates(alternative, depth, spare=len(taken)):
                    if self._fits(schemas, value) and not (taken and self._judge.canonical(value) in refused):
                        return (value,)
            except NotUnderstood:
                continue
        return None

    def _fits(self, schemas: tuple[JsonValue, ...], value: JsonValue) -> bool:
        try:
            return all(self._judge.holds(schema, value) for schema in schemas)
        except NotUnderstood:
            return False

    def _flatten(self, schemas: Sequence[JsonValue]) -> Parts | None:
        """Return the schemas with all they refer to, None when nothing satisfies them or they are not understood."""
        parts: dict[int, Schema] = {}
        waiting = list(reversed(schemas))
        while waiting:
            schema = waiting.pop()
            if schema is True or id(schema) in parts:
                self._judge.spend()
                continue
            if not isinstance(schema, dict):
                return None
            self._judge.spend_on(schema)
            parts[id(schema)] = schema
            try:
                waiting.extend(reversed(list(self._judge.conjuncts(schema))))
            except NotUnderstood:
                return None
        return tuple(parts.values())

    def _alternatives(self, parts: Parts, chosen: frozenset[tuple[int, str]]) -> Iterator[Parts]:
        """Yield the parts with a branch of every choice among them, one combination after the other."""
        if len(chosen) > MAX_CHOICES:
            raise OutOfSteps
        open_choices = (
            (part, keyword)
            for part in parts
            for keyword in ("anyOf", "oneOf", "if")
            if keyword in part and (id(part), keyword) not in chosen
        )
        choice = next(open_choices, None)
        if choice is None:
            yield parts
            return
        for branch in _branches(*choice):
            with_branch = self._flatten((*parts, *branch))
            if with_branch is not None:
                yield from self._alternatives(with_branch, chosen | {(id(choice[0]), choice[1])})

    def _candidates(self, parts: Parts, depth: int, *, spare: int) -> Iterator[JsonValue]:
        """Yield values worth judging; `spare` is how many of them may be refused for being taken."""
        for part in parts:
            if (listed := read_values(part)) is not None:
                yield from listed
                return
        for kind in _list_types(parts):
            if kind == "object":
                yield from self._objects(parts, depth)
            elif kind == "array":
                yield from self._arrays(parts, depth)
            elif kind == "string":
                yield from minimal_scalars.texts(parts, judge=self._judge, longest=self._max_characters, spare=spare)
            elif kind == "boolean":
                yield from (False, True)
            elif kind == "null":
                yield None
            else:
                yield from minimal_scalars.numbers(parts, is_whole=kind == "integer", spare=spare)

    def _objects(self, parts: Parts, depth: int) -> Iterator[JsonValue]:
        members: Schema = {}
        for name in _list_names(parts):
            self._judge.spend(len(parts) // ENTRIES_A_STEP)
            asked = tuple(schema for part in parts for schema in member_schemas(part, name))
            found = self.find(asked, depth - 1)
            if found is None:
                return
            members[name] = found[0]
        yield members

    def _arrays(self, parts: Parts, depth: int) -> Iterator[JsonValue]:
        is_unique = any(part.get("uniqueItems") for part in parts)
        items: list[JsonValue] = []
        while len(items) < greatest(parts, "minItems"):
            self._judge.spend(len(parts) // ENTRIES_A_STEP)
            asked = tuple(schema for part in parts for schema in item_schemas(part, len(items)))
            found = self.find(asked, depth - 1, taken=items if is_unique else ())
            if found is None:
                return
            items.append(found[0])
        yield items


def _branches(part: Schema, keyword: str) -> Iterator[tuple[JsonValue, ...]]:
    if keyword == "if":
        yield (part["if"], part.get("then", True))
        yield (part.get("else", True),)
    elif isinstance(listed := part[keyword], list):
        yield from ((branch,) for branch in listed)


def _list_types(parts: Parts) -> list[str]:
    """Return the types the parts agree on, those somebody named or hinted at first."""
    named = [types for part in parts if (types := read_types(part)) is not None]
    hinted = [kind for keyword, kind in HINTS.items() if any(keyword in part for part in parts)]
    wanted = dict.fromkeys([*(kind for types in named for kind in types), *hinted, *TYPES])
    return [
        kind for kind in wanted if all(kind in types or (kind == "integer" and "number" in types) for types in named)
    ]


def _list_names(parts: Parts) -> list[str]:
    """Return the members an object needs, in the order in which they are described."""
    described = list(dict.fromkeys(name for part in parts for name in read_members(part, "properties")))
    required = dict.fromkeys(name for part in parts for name in read_names(part, "required"))
    missing = math.ceil(greatest(parts, "minProperties")) - len(required)
    chosen = required | dict.fromkeys([name for name in described if name not in required][: max(missing, 0)])
    return [*(name for name in described if name in chosen), *(name for name in required if name not in described)]
