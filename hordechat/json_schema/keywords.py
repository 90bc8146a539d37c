"""The keywords we do ourselves because the library's have no bounds.

The library's search with `re`, compare every element with every other, gather every fault of every alternative, and
list a name as often as it was evaluated. What a keyword is given as its value the draft's metaschema let pass, unless a
reference led to where no schema is expected; it then does nothing, or fails as the library's keywords do.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from math import inf

from jsonschema.validators import Draft202012Validator

from hordechat.json_schema.walk import FAULT, REFERENCES, Keyword, Object, Walk

_INFINITIES = (inf, -inf)
"""What JSON has no word for, and yet `1e999` is read as."""


def _check_reference(keyword: str) -> Keyword:
    def check(walk: Walk, reference: object, value: object, _: Object) -> Iterator[object]:
        target = walk.refer(keyword, reference)
        # One fault says it all, so that nothing stays marked as followed while others are waited for.
        with walk.judgement.following(target.schema, value):
            fault = next(target.iter_errors(value), None)
        if fault is not None:
            yield fault

    return check


def _check_pattern(walk: Walk, pattern: object, value: object, _: Object) -> Iterator[object]:
    if isinstance(value, str) and not walk.judgement.is_found(pattern, value):
        yield FAULT


def _check_pattern_properties(walk: Walk, schemas: object, value: object, _: Object) -> Iterator[object]:
    if isinstance(value, dict):
        for pattern, schema in _object(schemas).items():
            for name, each in value.items():
                if walk.judgement.is_found(pattern, name):
                    yield from walk.descend(each, schema)


def _check_additional_properties(walk: Walk, allowed: object, value: object, schema: Object) -> Iterator[object]:
    if isinstance(value, dict):
        named, patterns = _object(schema.get("properties")), _object(schema.get("patternProperties"))
        for name, each in value.items():
            if name not in named and not any(walk.judgement.is_found(pattern, name) for pattern in patterns):
                yield from walk.descend(each, allowed)


def _check_additional_items(walk: Walk, allowed: object, value: object, schema: Object) -> Iterator[object]:
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, list):
        for each in islice(value, len(items), None):
            yield from walk.descend(each, allowed)


def _check_any_of(walk: Walk, schemas: object, value: object, _: Object) -> Iterator[object]:
    for schema in _array(schemas):
        if next(walk.descend(value, schema), None) is None:
            return
    yield FAULT


def _check_one_of(walk: Walk, schemas: object, value: object, _: Object) -> Iterator[object]:
    fitting = 0
    for schema in _array(schemas):
        if next(walk.descend(value, schema), None) is None:
            fitting += 1
        if fitting > 1:
            break
    if fitting != 1:
        yield FAULT


def _check_type_draft3(walk: Walk, types: object, value: object, _: Object) -> Iterator[object]:
    for each in types if isinstance(types, list) else [types]:
        if isinstance(each, str):
            if walk.is_type(value, each):
                return
        elif next(walk.descend(value, each), None) is None:
            return
    yield FAULT


def _check_multiple(walk: Walk, divisor: object, value: object, schema: Object) -> Iterator[object]:
    try:
        yield from Draft202012Validator.VALIDATORS["multipleOf"](walk, divisor, value, schema)
    except OverflowError:
        # The quotient of a large number by a small one is no float.
        if not _is_multiple(value, divisor):
            yield FAULT


def _is_multiple(value: object, divisor: object) -> bool:
    if not isinstance(value, int | float) or not isinstance(divisor, int | float) or value in _INFINITIES:
        return False
    return (Fraction(value) / Fraction(divisor)).denominator == 1


def _check_unique(walk: Walk, is_wanted: object, value: object, _: Object) -> Iterator[object]:
    if is_wanted is True and isinstance(value, list):
        seen: set[tuple[str, ...]] = set()
        for each in value:
            spelling = _spell(walk, each)
            if spelling in seen:
                yield FAULT
                return
            seen.add(spelling)


def _spell(walk: Walk, value: object) -> tuple[str, ...]:
    """Return texts that are the same for two values if JSON Schema holds them for equal.

    Texts, because the hash of a number can be foreseen, and lists be made of numbers that all have the same.
    """
    texts: list[str] = []
    ahead = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, str):
            texts.append(f'"{each}')
        elif isinstance(each, list):
            walk.judgement.stopwatch.check()
            texts.append(f"[{len(each)}")
            ahead.extend(each)
        elif isinstance(each, dict):
            walk.judgement.stopwatch.check()
            names = sorted(each)
            texts.append(f"{{{len(names)}")
            texts.extend(names)
            ahead.extend(each[name] for name in names)
        elif isinstance(each, float) and each.is_integer():
            texts.append(str(int(each)))
        else:
            texts.append(str(each))
    return tuple(texts)


def _check_unevaluated_properties(walk: Walk, _: object, value: object, schema: Object) -> Iterator[object]:
    # What conforms to the keyword's own schema is among what was evaluated.
    if isinstance(value, dict) and value.keys() - _list_evaluated_names(walk, value, schema):
        yield FAULT


def _list_evaluated_names(walk: Walk, value: Object, schema: Object) -> set[str]:
    names = _object(schema.get("properties")).keys() & value.keys()
    for pattern in _object(schema.get("patternProperties")):
        names |= {name for name in value.keys() - names if walk.judgement.is_found(pattern, name)}
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            rest = walk.evolve(schema=schema[keyword])
            names |= {name for name in value.keys() - names if rest.is_valid(value[name])}
    for within in _walk_in_place(walk, value, schema):
        names |= _list_evaluated_names(within, value, _object(within.schema))
    return names


def _check_unevaluated_items(walk: Walk, _: object, value: object, schema: Object) -> Iterator[object]:
    if isinstance(value, list) and len(_list_evaluated_indexes(walk, value, schema)) < len(value):
        yield FAULT


def _list_evaluated_indexes(walk: Walk, value: list[object], schema: Object) -> set[int]:
    every = range(len(value))
    items = schema.get("items", [])
    if not isinstance(items, list) or (items and "additionalItems" in schema):
        return set(every)
    indexes = set(every[: len(items)])
    if "prefixItems" in walk.dialect.keywords:
        indexes |= set(every[: len(_array(schema.get("prefixItems")))])
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            rest = walk.evolve(schema=schema[keyword])
            indexes |= {index for index in every if index not in indexes and rest.is_valid(value[index])}
    for within in _walk_in_place(walk, value, schema):
        indexes |= _list_evaluated_indexes(within, value, _object(within.schema))
    return indexes


def _walk_in_place(walk: Walk, value: object, schema: Object) -> Iterator[Walk]:
    """Yield the schemas within one that are for the same value and that it conforms to."""
    for keyword in REFERENCES:
        if keyword in schema and keyword in walk.dialect.keywords:
            target = walk.refer(keyword, schema[keyword])
            with walk.judgement.following(target.schema, value):
                yield target
    subschemas = [each for keyword in ("allOf", "oneOf", "anyOf") for each in _array(schema.get(keyword))]
    for subschema in subschemas:
        within = walk.evolve(schema=subschema)
        if within.is_valid(value):
            yield within
    if isinstance(value, dict):
        for name, subschema in _object(schema.get("dependentSchemas")).items():
            if name in value:
                yield walk.evolve(schema=subschema)
    if "if" in schema:
        condition = walk.evolve(schema=schema["if"])
        holds = condition.is_valid(value)
        if holds:
            yield condition
        branch = "then" if holds else "else"
        if branch in schema:
            yield walk.evolve(schema=schema[branch])


def _object(schema: object) -> dict[str, object]:
    return schema if isinstance(schema, dict) else {}


def _array(schemas: object) -> list[object]:
    return schemas if isinstance(schemas, list) else []


BOUNDED: Mapping[str, Keyword] = {
    **{keyword: _check_reference(keyword) for keyword in REFERENCES},
    "additionalItems": _check_additional_items,
    "additionalProperties": _check_additional_properties,
    "anyOf": _check_any_of,
    "divisibleBy": _check_multiple,
    "multipleOf": _check_multiple,
    "oneOf": _check_one_of,
    "pattern": _check_pattern,
    "patternProperties": _check_pattern_properties,
    "unevaluatedItems": _check_unevaluated_items,
    "unevaluatedProperties": _check_unevaluated_properties,
    "uniqueItems": _check_unique,
}
"""What takes the place of the library's keywords of these names."""

BOUNDED_DRAFT3: Mapping[str, Keyword] = {**BOUNDED, "type": _check_type_draft3}
"""The same for draft 3, whose types may be schemas."""
