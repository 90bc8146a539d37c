"""What is written for a JSON Schema, judged by the library that the judge of replies is made of."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from hordechat.contract.vocabulary import FaultReason
from tests.json_schema.strategies import schemas
from workers_app.bridge import minimal_instance
from workers_app.bridge.values import GenerationFailed

Json = Any

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NULL = {"type": "null"}
MOST_SECONDS = 3
"""Above the half a second that is allowed, for other tests share the machine."""


def closed(**properties: Json) -> Json:
    """Return the strict schema of an object with these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def nested(keyword: str, levels: int) -> Json:
    schema: Json = TEXT
    for _ in range(levels):
        schema = {keyword: [schema] if keyword == "allOf" else schema}
    return schema


def doubled(levels: int) -> Json:
    """Return a schema of few words whose smallest instance has two to the power of `levels` values."""
    below = [{"$ref": f"#/$defs/level{n + 1}"} for n in range(levels)]
    steps = {f"level{n}": closed(a=below[n], b=below[n]) for n in range(levels)}
    return {"$ref": "#/$defs/level0", "$defs": {**steps, f"level{levels}": NULL}}


def items(schema: Json) -> Json:
    """Return the schema of many items."""
    return {"type": "array", "minItems": 9999, "items": schema}


MANY = {"properties": {f"key {n}": TEXT for n in range(10_000)}}
BRANCH = {"anyOf": [{"$ref": "#/$defs/tree"}, NULL]}
TREE = {"$ref": "#/$defs/tree", "$defs": {"tree": closed(value=WHOLE, left=BRANCH, right=BRANCH)}}


def write(schema: Json, max_characters: int = 4096) -> str:
    return minimal_instance.write(schema, max_characters=max_characters)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        # Types; an object where one will do
        ({}, "{}"),
        ({"type": "object"}, "{}"),
        ({"type": "array"}, "[]"),
        ({"type": "string"}, '""'),
        ({"type": "integer"}, "0"),
        ({"type": "number"}, "0"),
        ({"type": "boolean"}, "false"),
        ({"type": "null"}, "null"),
        ({"type": ["null", "string"]}, "null"),
        ({"type": ["string", "object"]}, "{}"),
        ({"minLength": 2}, "{}"),
        # Listed values
        ({"const": {"a": [1, None]}}, '{"a":[1,null]}'),
        ({"enum": ["Zürich", "Bern"]}, '"Zürich"'),
        ({"type": "string", "enum": [1, None, "a"]}, '"a"'),
        # Objects: what is required, in the order of its description
        (closed(name=TEXT, age={"type": "integer", "minimum": 18}), '{"name":"","age":18}'),
        ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["b"]}, '{"b":""}'),
        ({"type": "object", "required": ["z", "a"], "properties": {"a": TEXT}}, '{"a":"","z":{}}'),
        ({"required": ["a"], "additionalProperties": {"type": "boolean"}}, '{"a":false}'),
        (closed(a=closed(b=closed(c={"const": 7}))), '{"a":{"b":{"c":7}}}'),
        # Arrays
        ({"type": "array", "items": WHOLE, "minItems": 2}, "[0,0]"),
        ({"type": "array", "prefixItems": [TEXT, {"const": 1}], "items": NULL, "minItems": 3}, '["",1,null]'),
        ({"type": "array", "prefixItems": [TEXT], "items": False, "minItems": 1}, '[""]'),
        # Numbers
        ({"type": "integer", "exclusiveMinimum": 3}, "4"),
        ({"type": "integer", "exclusiveMaximum": 0}, "-1"),
        ({"type": "integer", "minimum": 2.5}, "3"),
        ({"type": "integer", "multipleOf": 7, "minimum": 1}, "7"),
        ({"type": "integer", "multipleOf": 7, "maximum": -1}, "-7"),
        ({"type": "number", "multipleOf": 0.01, "minimum": 0.005}, "0.01"),
        ({"type": "number", "minimum": 0.2, "maximum": 0.7}, "0.2"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, "0.25"),
        # Texts
        ({"type": "string", "minLength": 3}, '"xxx"'),
        ({"type": "string", "format": "date-time"}, '"2000-01-01T00:00:00Z"'),
        ({"type": "string", "format": "email", "maxLength": 3}, '""'),
        ({"type": "string", "pattern": "^x*$"}, '""'),
        # Branches: the first that can be built
        ({"anyOf": [TEXT, WHOLE]}, '""'),
        ({"anyOf": [False, WHOLE]}, "0"),
        ({"anyOf": [TEXT, closed(a=TEXT)]}, '{"a":""}'),
        ({"type": "integer", "anyOf": [{"minimum": 5, "maximum": 4}, {"minimum": 9}]}, "9"),
        ({"type": "integer", "minimum": 1, "oneOf": [{"multipleOf": 3}, {"multipleOf": 5}]}, "3"),
        # All of several schemas
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"a":{},"b":{}}'),
        ({"allOf": [closed(a=TEXT), {"properties": {"a": {"minLength": 2}}}]}, '{"a":"xx"}'),
        ({"allOf": [{"type": "number"}, {"type": ["integer", "null"]}, {"minimum": 2}, {"minimum": 1}]}, "2"),
        ({"type": "integer", "allOf": [{"anyOf": [{"maximum": 3}, {"minimum": 9}]}, {"minimum": 4}]}, "9"),
        (nested("allOf", 50), '""'),
        # References
        ({"$ref": "#/$defs/a~1b~0c%20d", "$defs": {"a/b~c d": {"const": 1}}}, "1"),
        ({"$ref": "#/anyOf/1", "anyOf": [TEXT, {"const": 1}]}, "1"),
        ({"$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": WHOLE}}, "3"),
        ({"$id": "https://example.org/schema", **closed(a={"$ref": "#/$defs/a"}), "$defs": {"a": TEXT}}, '{"a":""}'),
        # Recursion ends where it may
        (TREE, '{"value":0,"left":null,"right":null}'),
        (closed(children={"type": "array", "items": {"$ref": "#"}}), '{"children":[]}'),
        ({"anyOf": [closed(next={"$ref": "#"}), closed(end=TEXT)]}, '{"end":""}'),
        ({"type": "object", "properties": {"next": {"$ref": "#"}}}, "{}"),
    ],
)  # fmt: skip
def test_the_minimal_instance(schema: Json, text: str) -> None:
    written = write(schema)

    assert written == text
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(json.loads(written))


@pytest.mark.parametrize(
    "schema",
    [
        # Nothing satisfies these
        {"enum": []},
        {"type": "string", "const": 1},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"allOf": [TEXT, WHOLE]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        closed(next={"$ref": "#"}),
        # No schemas
        None,
        False,
        "string",
        {"type": "text"},
        {"type": "integer", "minimum": "3"},
        {"type": "number", "multipleOf": 0},
        {"type": "object", "required": "a"},
        {"anyOf": {"type": "string"}},
        # No JSON
        {"const": float("inf")},
        {"const": "\ud83d"},
        # References that lead nowhere, outside or in a circle
        {"$ref": "#/$defs/absent"},
        {"$ref": "#/required/" + "9" * 5000, "required": ["a"]},
        {"$ref": "https://example.org/schema"},
        {"$ref": 1},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        # More than is tried, though there is a value
        {"type": "string", "pattern": "^[A-Z]{2}$"},
        {"type": "array", "items": TEXT, "minItems": 2, "uniqueItems": True},
        {"type": "array", "contains": TEXT},
        {"type": "object", "minProperties": 1},
        {"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}},
        {"type": "integer", "not": {"const": 0}},
        {"if": {"type": "object"}, "then": {"required": ["a"]}},
        {"oneOf": [{"type": "number"}, WHOLE]},
    ],
)  # fmt: skip
def test_hands_back_what_it_finds_no_value_for(schema: Json) -> None:
    with pytest.raises(GenerationFailed) as failed:
        write(schema)

    assert failed.value.reason is FaultReason.UNBUILDABLE_GRAMMAR


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "array", "minItems": 10**9}, id="items"),
        pytest.param(items({"const": "x" * 10**6}), id="a constant again and again"),
        pytest.param(items({"type": "string", "minLength": 4000}), id="long texts"),
        pytest.param({"type": "string", "minLength": 10**9}, id="characters"),
        pytest.param({"type": "integer", "minimum": 10**4000}, id="digits"),
        pytest.param({"type": "object", "required": [f"key {n}" for n in range(50_000)]}, id="names"),
        pytest.param(doubled(18), id="a doubling instance"),
        pytest.param(doubled(40), id="a doubling instance too deep"),
        pytest.param({"anyOf": [closed(a={"$ref": "#"}), closed(b={"$ref": "#"})]}, id="branches that do not end"),
        pytest.param({"allOf": [*[{"anyOf": [NULL, WHOLE]}] * 60, TEXT]}, id="branches of which none fits"),
        pytest.param({"type": "object", "allOf": [{"required": [f"key {n}"]} for n in range(5000)]}, id="parts"),
        pytest.param({"allOf": [{"$ref": "#"}] * 5000}, id="references"),
        pytest.param({"allOf": [{"$ref": "#/$defs/many"}] * 200, "$defs": {"many": MANY}}, id="merged members"),
        pytest.param(nested("not", 400), id="nested schemas"),
        pytest.param({"type": "string", "pattern": "^(((a{999}){999}){999}){999}$"}, id="repeated characters"),
        pytest.param({"type": "string", "minLength": 60, "pattern": "^(x|xx)+!$"}, id="a slow pattern"),
    ],
)
def test_a_hostile_schema_costs_little(schema: Json) -> None:
    started_at = time.monotonic()

    with pytest.raises(GenerationFailed):
        write(schema)

    assert time.monotonic() - started_at < MOST_SECONDS


@pytest.mark.parametrize(("max_characters", "fits"), [(12, True), (11, False)])
def test_the_whole_text_has_to_fit(max_characters: int, fits: bool) -> None:
    schema = closed(name={"type": "string", "minLength": 1})

    if fits:
        assert write(schema, max_characters) == '{"name":"x"}'
    else:
        with pytest.raises(GenerationFailed):
            write(schema, max_characters)


def test_a_branch_that_fits_the_length_is_taken() -> None:
    assert write({"anyOf": [{"type": "string", "minLength": 50}, WHOLE]}, 10) == "0"


def test_a_large_schema_of_an_ordinary_kind_is_served() -> None:
    person = closed(**{f"field {number}": {"type": "string", "description": "A field."} for number in range(50)})
    schema = closed(**{f"person {number}": person for number in range(10)})

    assert Draft202012Validator(schema).is_valid(json.loads(write(schema, 10**5)))


@given(schemas())
def test_what_is_written_matches_the_schema_of_whatever_draft(schema: dict[str, Json]) -> None:
    try:
        text = write(schema)
        is_valid = validator_for(schema)(schema, registry=Registry()).is_valid(json.loads(text))
    except (GenerationFailed, SchemaError, Unresolvable, TypeError, RecursionError):
        return  # no value; or the library stumbles over what the judge of replies takes

    assert is_valid
