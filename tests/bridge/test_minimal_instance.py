"""What is written for a JSON Schema, judged by the library that judges replies."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft7Validator, Draft202012Validator
from referencing.exceptions import Unresolvable

from hordechat.contract.vocabulary import FaultReason
from workers_app.bridge import minimal_instance
from workers_app.bridge.values import GenerationFailed

Json = Any

LONG = 4096


def closed(**properties: Json) -> Json:
    """Return the strict schema of an object with these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nullable(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def nested(keyword: str, levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {keyword: [schema] if keyword == "allOf" else schema}
    return schema


def doubled(levels: int) -> Json:
    """Return a schema of few words whose smallest instance has two to the power of `levels` values."""
    names = [f"level{number}" for number in range(levels)]
    definitions = {
        name: closed(a={"$ref": f"#/$defs/{below}"}, b={"$ref": f"#/$defs/{below}"})
        for name, below in zip(names, [*names[1:], "end"], strict=True)
    }
    return {"$ref": "#/$defs/level0", "$defs": {**definitions, "end": {"type": "null"}}}


TEXT = {"type": "string"}
NODE = closed(
    value={"type": "integer"}, left=nullable({"$ref": "#/$defs/node"}), right=nullable({"$ref": "#/$defs/node"})
)


def write(schema: Json, max_characters: int = LONG) -> str:
    return minimal_instance.write(schema, max_characters=max_characters)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        # Types, and none at all
        ({}, "{}"),
        (True, "{}"),
        ({"description": "anything", "x-unknown": 1}, "{}"),
        ({"type": "object"}, "{}"),
        ({"type": "array"}, "[]"),
        ({"type": "string"}, '""'),
        ({"type": "integer"}, "0"),
        ({"type": "number"}, "0"),
        ({"type": "boolean"}, "false"),
        ({"type": "null"}, "null"),
        ({"type": ["null", "string"]}, "null"),
        ({"type": ["string", "object"]}, "{}"),  # an object where one will do
        (closed(a={"type": ["string", "null"]}), '{"a":""}'),
        (closed(a={"minLength": 2}, b={"maximum": -3}, c={"items": TEXT}, d=True), '{"a":"xx","b":-3,"c":[],"d":{}}'),
        # Listed values
        ({"const": {"a": [1, None]}}, '{"a":[1,null]}'),
        ({"enum": ["Zürich", "Bern"]}, '"Zürich"'),
        ({"type": "string", "enum": [1, None, "a"]}, '"a"'),
        ({"enum": [0, False], "not": {"const": 0}}, "false"),
        ({"const": 1, "enum": [True, 1.0]}, "1"),
        # Objects
        (closed(), "{}"),
        (closed(name=TEXT, age={"type": "integer", "minimum": 18}), '{"name":"","age":18}'),
        ({"properties": {"a": TEXT, "b": TEXT}, "required": ["b"]}, '{"b":""}'),
        ({"type": "object", "required": ["z", "a"], "properties": {"a": TEXT}}, '{"a":"","z":{}}'),
        ({"required": ["a"], "additionalProperties": {"type": "boolean"}}, '{"a":false}'),
        ({"properties": {"a": TEXT, "b": TEXT}, "minProperties": 1, "additionalProperties": False}, '{"a":""}'),
        ({"required": ["ab"], "propertyNames": {"minLength": 2}}, '{"ab":{}}'),
        (closed(a=closed(b=closed(c={"const": 7}))), '{"a":{"b":{"c":7}}}'),
        # Arrays
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, "[0,0]"),
        ({"prefixItems": [TEXT, {"const": 1}], "items": {"const": 2}, "minItems": 3, "type": "array"}, '["",1,2]'),
        ({"prefixItems": [TEXT], "items": False, "minItems": 1, "type": "array"}, '[""]'),
        ({"items": {"enum": ["a", "b", "c"]}, "minItems": 3, "uniqueItems": True, "type": "array"}, '["a","b","c"]'),
        ({"items": {"type": "number"}, "minItems": 3, "uniqueItems": True, "type": "array"}, "[0,1,-1]"),
        ({"items": TEXT, "minItems": 3, "uniqueItems": True, "type": "array"}, '["","0","1"]'),
        ({"items": {"type": "object"}, "maxItems": 3, "type": "array"}, "[]"),
        # Numbers
        ({"type": "integer", "minimum": 3}, "3"),
        ({"type": "integer", "exclusiveMinimum": 3}, "4"),
        ({"type": "integer", "maximum": -3}, "-3"),
        ({"type": "integer", "exclusiveMaximum": 0}, "-1"),
        ({"type": "integer", "minimum": 2.5}, "3"),
        ({"type": "integer", "multipleOf": 7, "minimum": 1}, "7"),
        ({"type": "integer", "multipleOf": 7, "maximum": -1}, "-7"),
        ({"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}, {"minimum": 1}]}, "12"),
        ({"type": "number", "minimum": 0.2, "maximum": 0.7}, "0.2"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, "0.25"),
        ({"type": "number", "multipleOf": 0.01, "minimum": 0.005}, "0.01"),
        ({"type": "number", "multipleOf": 0.1, "minimum": 0.25}, "0.4"),  # in floats, 0.3 is no multiple of 0.1
        ({"type": "number", "multipleOf": 2.5, "exclusiveMinimum": 0}, "2.5"),
        ({"type": "integer", "multipleOf": 0.5, "exclusiveMinimum": 0}, "1"),
        ({"type": "number", "minimum": -1e300}, "0"),
        # Texts
        ({"type": "string", "minLength": 3, "maxLength": 5}, '"xxx"'),
        ({"type": "string", "format": "date-time"}, '"2000-01-01T00:00:00Z"'),
        ({"type": "string", "format": "email", "maxLength": 3}, '""'),
        ({"type": "string", "format": "unheard-of"}, '""'),
        ({"type": "string", "pattern": "^@[a-zA-Z0-9_]+$", "minLength": 4}, '"@aaa"'),
        ({"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$", "format": "email"}, '"AA-000"'),
        ({"type": "string", "not": {"const": ""}}, '"0"'),
        # Branches
        ({"anyOf": [TEXT, {"type": "integer"}]}, '""'),
        ({"anyOf": [False, {"type": "integer"}]}, "0"),
        ({"anyOf": [TEXT, closed(a=TEXT)]}, '{"a":""}'),
        ({"type": "integer", "anyOf": [{"minimum": 5, "maximum": 4}, {"minimum": 9}]}, "9"),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "0.5"),
        ({"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}], "type": "integer", "minimum": 1}, "3"),
        ({"allOf": [closed(a=TEXT), {"properties": {"a": {"minLength": 2}}}]}, '{"a":"xx"}'),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"a":{},"b":{}}'),
        ({"allOf": [{"type": "number"}, {"type": ["integer", "null"]}, {"minimum": 2}]}, "2"),
        ({"allOf": [{"anyOf": [{"minimum": 2}, {"minimum": 9}]}, {"minimum": 4}], "type": "integer"}, "4"),
        ({"if": {"type": "object"}, "then": {"required": ["a"]}}, '{"a":{}}'),
        ({"type": "string", "if": {"maxLength": 3}, "then": False, "else": {"minLength": 5}}, '"xxxxx"'),
        ({"not": {"type": "object"}}, "[]"),
        # References
        ({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}, "1"),
        ({"$ref": "#/$defs/a~1b~0c%20d", "$defs": {"a/b~c d": {"const": 1}}}, "1"),
        ({"$ref": "#/prefixItems/1", "prefixItems": [TEXT, {"const": 1}]}, "1"),
        ({"$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": {"type": "integer"}}}, "3"),
        (closed(a={"$ref": "#/properties/b"}, b=TEXT), '{"a":"","b":""}'),
        ({"$id": "https://example.org/schema", **closed(a={"$ref": "#/$defs/a"}), "$defs": {"a": TEXT}}, '{"a":""}'),
        # Recursion ends where it may
        ({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, '{"value":0,"left":null,"right":null}'),
        (closed(children={"type": "array", "items": {"$ref": "#"}}), '{"children":[]}'),
        ({"anyOf": [closed(next={"$ref": "#"}), closed(end=TEXT)]}, '{"end":""}'),
        (closed(a=closed(next={"anyOf": [{"$ref": "#"}, {"const": 0}]})), '{"a":{"next":0}}'),
        ({"properties": {"next": {"$ref": "#"}}, "type": "object"}, "{}"),
    ],
)  # fmt: skip
def test_the_minimal_instance(schema: Json, text: str) -> None:
    written = write(schema)

    assert written == text
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(json.loads(written))


def test_items_are_listed_as_older_drafts_list_them_too() -> None:
    schema = {"type": "array", "items": [TEXT], "additionalItems": {"type": "null"}, "minItems": 2}

    assert write(schema) == '["",null]'
    assert Draft7Validator(schema).is_valid(["", None])


@pytest.mark.parametrize(
    "schema",
    [
        # Nothing satisfies these
        False,
        {"enum": []},
        {"type": "string", "const": 1},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        closed(next={"$ref": "#"}),
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True},
        {"oneOf": [{"type": "null"}, {"type": ["null"]}]},
        # No schemas
        None,
        "string",
        {"type": "text"},
        {"type": []},
        {"type": "integer", "minimum": "3"},
        {"type": "integer", "minimum": float("nan")},
        {"type": "number", "multipleOf": 0},
        {"type": "object", "required": "a"},
        {"anyOf": {"type": "string"}},
        {"const": float("inf")},
        {"const": "\ud83d"},
        # References that lead nowhere, outside or in a circle
        {"$ref": "#/$defs/absent"},
        {"$ref": "#/required/01", "required": ["a"]},
        {"$ref": "#/required/" + "9" * 5000, "required": ["a"]},
        {"$ref": "https://example.org/schema"},
        {"$ref": 1},
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"allOf": [{"$ref": "#"}]},
        # More than is understood, so that no value is known to satisfy it
        {"type": "array", "contains": TEXT},
        {"type": "string", "pattern": "^(?!a)b"},
        {"enum": ["a"], "pattern": "a"},
        {"required": ["a"], "patternProperties": {"^a": TEXT}, "type": "object"},
        {"required": ["a"], "dependentRequired": {"a": ["b"]}, "type": "object"},
        closed(a={"$id": "https://example.org/a", "type": "string"}),
        {"$dynamicRef": "#a"},
    ],
)
def test_where_no_instance_is_found_the_grammar_cannot_be_built(schema: Json) -> None:
    with pytest.raises(GenerationFailed) as failed:
        write(schema)

    assert failed.value.reason is FaultReason.UNBUILDABLE_GRAMMAR


def test_a_keyword_that_is_not_understood_does_no_harm_where_it_is_not_met() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"pattern": "(?=a)"}, "b": TEXT},
        "required": ["b"],
        "$defs": {"c": {"type": "array", "contains": TEXT}},
    }

    assert write(schema) == '{"b":""}'


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "array", "minItems": 10**9}, id="items"),
        pytest.param({"type": "array", "minItems": 10**9, "uniqueItems": True}, id="unique items"),
        pytest.param({"type": "string", "minLength": 10**9}, id="characters"),
        pytest.param({"type": "string", "pattern": "^(((a{999}){999}){999}){999}$"}, id="repeated characters"),
        pytest.param({"type": "string", "pattern": "(" * 900 + "a" + ")" * 900}, id="groups"),
        pytest.param({"type": "object", "minProperties": 10**9}, id="members"),
        pytest.param({"type": "integer", "minimum": 10**4000}, id="digits"),
        pytest.param({"type": "number", "minimum": 1e300, "multipleOf": 5e-324}, id="digits of a multiple"),
        pytest.param(doubled(40), id="a doubling instance"),
        pytest.param({"allOf": [{"anyOf": [{}, {}]}] * 60 + [False]}, id="doubling branches"),
        pytest.param(
            {"allOf": [{"anyOf": [{"minLength": 5}, {"maxLength": 3}]} for _ in range(30)] + [{"const": "four"}]},
            id="doubling branches of which none fits",
        ),
        pytest.param({"anyOf": [closed(a={"$ref": "#"}), closed(b={"$ref": "#"})]}, id="branches that do not end"),
        pytest.param({"allOf": [{"required": [f"key {n}"]} for n in range(5000)], "type": "object"}, id="parts"),
        pytest.param({"required": [f"key {n}" for n in range(50_000)], "type": "object"}, id="names"),
        pytest.param({"enum": list(range(50_000)), "minimum": 50_000}, id="values"),
        pytest.param({"const": list(range(9000)), "anyOf": [{"const": n} for n in range(9000)]}, id="comparisons"),
        pytest.param({"$ref": "#" + "/$defs" * 50_000, "$defs": {}}, id="steps of a reference"),
        pytest.param(nested("not", 400), id="nested schemas"),
        pytest.param({"allOf": [{"$ref": "#"}] * 5000}, id="references"),
    ],
)
def test_a_hostile_schema_costs_little(schema: Json) -> None:
    started_at = time.monotonic()

    with pytest.raises(GenerationFailed):
        write(schema)

    assert time.monotonic() - started_at < 5


def test_nested_conjunctions_are_followed_to_their_end() -> None:
    assert write(nested("allOf", 50)) == '""'


@pytest.mark.parametrize(("max_characters", "fits"), [(12, True), (11, False)])
def test_the_whole_text_has_to_fit(max_characters: int, fits: bool) -> None:
    schema = closed(name={"type": "string", "minLength": 1})

    if fits:
        assert write(schema, max_characters) == '{"name":"x"}'
    else:
        with pytest.raises(GenerationFailed) as failed:
            write(schema, max_characters)
        assert failed.value.reason is FaultReason.UNBUILDABLE_GRAMMAR
        assert failed.value.note == "the value has 12 characters of 11"


def test_a_branch_that_fits_the_length_is_taken() -> None:
    assert write({"anyOf": [{"type": "string", "minLength": 50}, {"type": "integer"}]}, 10) == "0"


def test_a_large_schema_of_an_ordinary_kind_is_served() -> None:
    person = closed(**{f"field {number}": {"type": "string", "description": "A field."} for number in range(50)})
    schema = closed(**{f"person {number}": person for number in range(10)})

    assert Draft202012Validator(schema).is_valid(json.loads(write(schema, 10**5)))


# -- Any schema --------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
VALUES: SearchStrategy[Json] = st.sampled_from(
    [None, True, False, 0, 1, 1.5, -2, "", "a", "abc", [], [1], {}, {"a": 1}]
)
REFERENCES = st.sampled_from(["#/$defs/first", "#/$defs/second"]).map(lambda place: {"$ref": place})


def bounded(kind: str, least_key: str, most_key: str, values: SearchStrategy[Json]) -> SearchStrategy[Json]:
    """Draw a scalar's schema with bounds some value is within."""
    return st.tuples(st.none() | values, st.none() | values).map(
        lambda pair: {
            "type": kind,
            **({} if pair[0] is None else {least_key: pair[0] if pair[1] is None else min(pair)}),
            **({} if pair[1] is None else {most_key: pair[1] if pair[0] is None else max(pair)}),
        }
    )


SCALARS = (
    st.sampled_from([{}, {"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {"type": "integer"}])
    | bounded("string", "minLength", "maxLength", st.integers(0, 9))
    | bounded("integer", "minimum", "maximum", st.integers(-99, 99))
    | bounded("number", "minimum", "maximum", st.floats(-99, 99))
    | st.tuples(st.integers(1, 9), st.integers(-99, 99)).map(
        lambda pair: {"type": "integer", "multipleOf": pair[0], "exclusiveMinimum": pair[1]}
    )
    | st.lists(VALUES, min_size=1, max_size=3).map(lambda values: {"enum": values})
    | VALUES.map(lambda value: {"const": value})
)


@st.composite
def objects(draw: st.DrawFn, inner: SearchStrategy[Json]) -> Json:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    schema = closed(**properties)
    if draw(st.booleans()):
        schema["required"] = draw(st.lists(NAMES, max_size=3, unique=True))
        del schema["additionalProperties"]
    return schema


def arrays(inner: SearchStrategy[Json]) -> SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 3), "maxItems": st.just(3)}
    )


def branches(inner: SearchStrategy[Json]) -> SearchStrategy[Json]:
    return st.lists(inner, min_size=1, max_size=3).map(lambda schemas: {"anyOf": schemas})


ORDINARY: SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: objects(inner) | arrays(inner) | branches(inner), max_leaves=12
)
REFERRING: SearchStrategy[Json] = st.recursive(
    # Below a member, or the reference could lead back to itself.
    SCALARS | REFERENCES.map(lambda reference: closed(next=nullable(reference))),
    lambda inner: objects(inner) | arrays(inner) | branches(inner),
    max_leaves=8,
)


@st.composite
def with_definitions(draw: st.DrawFn) -> Json:
    """Draw a schema whose parts refer to each other, and to null where that would not end."""
    return {**draw(REFERRING), "$defs": {"first": draw(REFERRING), "second": draw(REFERRING)}}


@given(ORDINARY | with_definitions())
def test_an_ordinary_schema_gets_an_instance(schema: Json) -> None:
    text = write(schema, 10**6)

    assert Draft202012Validator(schema).is_valid(json.loads(text))
    assert write(json.loads(json.dumps(schema)), 10**6) == text


KEYWORDS: dict[str, SearchStrategy[Json]] = {
    "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null", ["null", "object"]]),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": st.integers(-3, 3),
    "exclusiveMinimum": st.integers(-3, 3),
    "maximum": st.integers(-3, 3),
    "exclusiveMaximum": st.sampled_from([0.5, 2]),
    "multipleOf": st.sampled_from([1, 3, 0.1, 0.25]),
    "minLength": st.integers(0, 3),
    "maxLength": st.integers(0, 3),
    "pattern": st.sampled_from(["^a+$", "b", "^[^a]?c", "(?=a)"]),
    "minItems": st.integers(0, 3),
    "maxItems": st.integers(0, 3),
    "uniqueItems": st.booleans(),
    "minProperties": st.integers(0, 2),
    "maxProperties": st.integers(0, 2),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": st.just({"a": ["b"]}),
    "$ref": st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a"]),
}


SCHEMA_KEYWORDS = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "contains", "unevaluatedItems",
    "not", "if", "then", "else",
)  # fmt: skip
LIST_KEYWORDS = ("prefixItems", "anyOf", "oneOf", "allOf")
MAP_KEYWORDS = ("properties", "patternProperties", "$defs")


@st.composite
def any_schemas(draw: st.DrawFn, levels: int = 3) -> Json:
    """Draw a schema of all keywords there are, whether or not anything satisfies it."""
    if not levels:
        return draw(st.booleans() | st.just({}))
    every = [*KEYWORDS, *SCHEMA_KEYWORDS, *LIST_KEYWORDS, *MAP_KEYWORDS]
    schema = {}
    for keyword in draw(st.lists(st.sampled_from(every), max_size=4, unique=True)):
        inner = any_schemas(levels - 1)
        if keyword in KEYWORDS:
            schema[keyword] = draw(KEYWORDS[keyword])
        elif keyword in LIST_KEYWORDS:
            schema[keyword] = draw(st.lists(inner, min_size=1, max_size=3))
        elif keyword in MAP_KEYWORDS:
            schema[keyword] = draw(st.dictionaries(NAMES, inner, max_size=2))
        else:
            schema[keyword] = draw(inner)
    return schema


@given(any_schemas())
def test_no_schema_gets_a_value_it_does_not_admit(schema: Json) -> None:
    Draft202012Validator.check_schema(schema)

    try:
        text = write(schema)
        is_admitted = Draft202012Validator(schema).is_valid(json.loads(text))
    except (GenerationFailed, RecursionError, Unresolvable):
        return  # no value, or references in parts beside it that the library follows for ever or to nowhere

    assert is_admitted
