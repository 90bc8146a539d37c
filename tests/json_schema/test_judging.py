"""A reply's JSON is held to its client's schema under the rules of the draft the schema names."""

import json

import pytest
from hypothesis import given, settings
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from hordechat.json_schema import judging
from hordechat.json_schema.judging import SchemaVerdict, judge
from tests.json_schema.strategies import DRAFTS, NEWEST, VALUES, Schema, nest, schemas

MATCHES, DIFFERS, UNUSABLE = SchemaVerdict.MATCHES, SchemaVerdict.DIFFERS, SchemaVerdict.UNUSABLE
DRAFT_3, DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020 = DRAFTS


@pytest.mark.parametrize(
    ("schema", "fitting", "unfitting"),
    [
        ({"type": "object"}, {}, []),
        ({"type": "integer"}, 1.0, 1.5),
        ({"type": "integer"}, 10**4000, True),
        ({"type": ["string", "null"]}, None, 0),
        ({"const": {"a": [1]}}, {"a": [1.0]}, {"a": [True]}),
        ({"enum": [0, "a"]}, 0.0, False),
        ({"required": ["a"]}, {"a": None}, {"b": 1}),
        ({"required": ["a"]}, "no object", {}),
        ({"properties": {"a": {"type": "string"}}}, {"b": 1}, {"a": 1}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"a": 1, "b": 1}),
        ({"additionalProperties": {"type": "null"}}, {"a": None}, {"a": None, "b": 1}),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, {"ba": 1}),
        ({"patternProperties": {"^a": {"type": "null"}, "b$": {"type": "null"}}}, {"c": 1, "a": None}, {"xb": 1}),
        ({"propertyNames": {"maxLength": 1}}, {"a": 1}, {"ab": 1}),
        ({"minProperties": 1, "maxProperties": 2}, {"a": 1}, {}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"c": 1}, {"a": 1}),
        ({"items": {"type": "integer"}}, [1, 2], [1, "2"]),
        ({"prefixItems": [{"type": "integer"}], "items": False}, [1], [1, 2]),
        ({"contains": {"const": 1}, "minContains": 2, "maxContains": 2}, [1, 0, 1], [1, 1, 1]),
        ({"uniqueItems": True}, [], [1, 1]),
        ({"pattern": "^[a-z]+$", "maxLength": 3}, "abc", "abcd"),
        ({"pattern": "^[a-z]+$", "maxLength": 3}, 12345, "AB"),
        ({"minLength": 1}, "é", ""),
        ({"minimum": 1, "exclusiveMaximum": 2}, 1, 2),
        ({"minimum": 1, "exclusiveMaximum": 2}, 1.5, 10**4000),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 1, 3),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "a", 1),
        ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}, {"multipleOf": 5}]}, 9, 6),
        ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, 4, 5),
        ({"not": {"type": "null"}}, 1, None),
        ({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"minimum": 0}}, "a", -1),
        ({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"minimum": 0}}, 1, ""),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, {"a": 1, "b": 1}),
        ({"anyOf": [{"properties": {"a": {"const": 1}}}, {}], "unevaluatedProperties": False}, {"a": 1}, {"a": 2}),
        ({"if": {"properties": {"a": {"const": 1}}}, "unevaluatedProperties": False}, {"a": 1}, {"a": 2}),
        ({"patternProperties": {"^a": {}}, "unevaluatedProperties": {"type": "null"}}, {"ab": 1, "b": None}, {"b": 1}),
        ({"dependentSchemas": {"a": {"properties": {"a": {}}}}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
        ({"$ref": "#/x", "x": {"properties": {"a": {}}}, "unevaluatedProperties": False}, {"a": 1}, {"b": 1}),
        ({"allOf": [{"prefixItems": [{}]}], "unevaluatedItems": False}, [1], [1, 2]),
        ({"allOf": [{"prefixItems": [True]}], "unevaluatedItems": {"type": "null"}}, [1, None], [1, 2]),
        ({"contains": {"const": 1}, "unevaluatedItems": False}, [1, 1], [1, 2]),
        ({}, {"anything": [1]}, ...),
    ],
)  # fmt: skip
def test_follows_the_newest_draft(schema: Schema, fitting: object, unfitting: object) -> None:
    for named in (schema, schema | {"$schema": NEWEST}, schema | {"$schema": f"{NEWEST}#"}):
        assert judge(named, fitting) is MATCHES
        assert unfitting is ... or judge(named, unfitting) is DIFFERS


@pytest.mark.spec("VER-28")
@pytest.mark.parametrize(
    ("draft", "schema", "value", "verdict"),
    [
        (DRAFT_3, {"properties": {"a": {"required": True}}}, {}, DIFFERS),
        (DRAFT_3, {"properties": {"a": {"required": True}}}, {"a": 1}, MATCHES),
        (DRAFT_3, {"divisibleBy": 2}, 3, DIFFERS),
        (DRAFT_3, {"multipleOf": 2}, 3, MATCHES),
        (DRAFT_3, {"extends": [{"type": "string"}, {"minLength": 2}]}, "a", DIFFERS),
        (DRAFT_3, {"disallow": ["string", {"minimum": 5}]}, 6, DIFFERS),
        (DRAFT_3, {"disallow": ["string", {"minimum": 5}]}, 4, MATCHES),
        (DRAFT_3, {"type": ["string", {"properties": {"a": {"type": "null"}}}]}, {"a": None}, MATCHES),
        (DRAFT_3, {"type": ["string", {"properties": {"a": {"type": "null"}}}]}, {"a": 1}, DIFFERS),
        (DRAFT_3, {"type": "any"}, 1, MATCHES),
        (DRAFT_3, {"type": "integer"}, 1.0, DIFFERS),
        (DRAFT_3, {"type": "unheard-of"}, 1, UNUSABLE),
        (DRAFT_3, {"dependencies": {"a": "b"}}, {"a": 1}, DIFFERS),
        (DRAFT_3, {"required": ["a"]}, {}, UNUSABLE),
        (DRAFT_3, {"patternProperties": {"(": {}}}, {}, UNUSABLE),
        (DRAFT_4, {"maximum": 3, "exclusiveMaximum": True}, 3, DIFFERS),
        (DRAFT_4, {"maximum": 3, "exclusiveMaximum": False}, 3, MATCHES),
        (DRAFT_4, {"minimum": 3, "exclusiveMinimum": True}, 3.5, MATCHES),
        (DRAFT_4, {"exclusiveMaximum": 3}, 4, UNUSABLE),
        (DRAFT_4, {"type": "integer"}, 1.0, DIFFERS),
        (DRAFT_4, {"const": 1}, 2, MATCHES),
        (DRAFT_4, {"items": [{"type": "null"}], "additionalItems": False}, [None, 1], DIFFERS),
        (DRAFT_4, {"id": "http://a/", "not": {"$ref": "#/definitions/a"}, "definitions": {"a": {}}}, 1, DIFFERS),
        (DRAFT_4, {"patternProperties": {"(": {}}}, {}, UNUSABLE),
        (DRAFT_6, {"exclusiveMaximum": 3}, 3, DIFFERS),
        (DRAFT_6, {"exclusiveMaximum": True}, 3, UNUSABLE),
        (DRAFT_6, {"type": "integer"}, 1.0, MATCHES),
        (DRAFT_6, {"properties": {"a": False}}, {"a": 1}, DIFFERS),
        (DRAFT_6, {"contains": {"const": 1}}, [2], DIFFERS),
        (DRAFT_6, {"if": True, "then": False}, 1, MATCHES),
        (DRAFT_7, {"if": True, "then": False}, 1, DIFFERS),
        (DRAFT_7, {"dependencies": {"a": ["b"], "b": {"required": ["c"]}}}, {"a": 1, "b": 1}, DIFFERS),
        (DRAFT_7, {"dependencies": {"a": {"required": ["b"]}, "b": ["c"]}}, {"b": 1, "c": 1}, MATCHES),
        (DRAFT_7, {"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {}}}, 1, MATCHES),
        (DRAFT_7, {"items": [{"type": "null"}], "additionalItems": {"type": "string"}}, [None, "a", 1], DIFFERS),
        (DRAFT_7, {"items": True, "additionalItems": False}, [1], MATCHES),
        (DRAFT_7, {"prefixItems": [False]}, [1], MATCHES),
        (DRAFT_7, {"unevaluatedProperties": False}, {"a": 1}, MATCHES),
        (DRAFT_2019, {"$ref": "#/$defs/a", "type": "null", "$defs": {"a": {}}}, 1, DIFFERS),
        (DRAFT_2019, {"items": [{"type": "null"}], "additionalItems": False}, [None, 1], DIFFERS),
        (DRAFT_2019, {"prefixItems": [False]}, [1], MATCHES),
        (DRAFT_2019, {"allOf": [{"items": [{}]}], "unevaluatedItems": False}, [1], MATCHES),
        (DRAFT_2019, {"allOf": [{"items": [{}]}], "unevaluatedItems": False}, [1, 2], DIFFERS),
        (DRAFT_2019, {"allOf": [{"items": [{}], "additionalItems": {}}], "unevaluatedItems": False}, [1, 2], MATCHES),
        (DRAFT_2019, {"prefixItems": [True], "unevaluatedItems": False}, [1], DIFFERS),
        (DRAFT_2019, {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"b": 1}, DIFFERS),
        (DRAFT_2019, {"additionalProperties": {"type": "null"}, "unevaluatedProperties": False}, {"b": None}, MATCHES),
        (DRAFT_2019, {"dependencies": {"a": ["b"]}}, {"a": 1}, MATCHES),
        (DRAFT_2019, {"type": "object", "properties": {"a": {"$recursiveRef": "#"}}}, {"a": {"a": 1}}, DIFFERS),
        (DRAFT_2020, {"items": [{"type": "null"}]}, [1], UNUSABLE),
        (DRAFT_2020, {"exclusiveMaximum": True}, 1, UNUSABLE),
        (DRAFT_2020, {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}, "type": "array"}, [[1]], DIFFERS),
    ],
)  # fmt: skip
def test_follows_the_draft_a_schema_names(draft: str, schema: Schema, value: object, verdict: SchemaVerdict) -> None:
    for name in (draft.removesuffix("#"), f"{draft.removesuffix('#')}#"):
        assert judge(schema | {"$schema": name}, value) is verdict


@pytest.mark.spec("VER-37")
@pytest.mark.parametrize(
    "draft", ["https://example.com/schema", "http://json-schema.org/draft-99/schema#", "", "#", "x:"]
)
def test_follows_the_newest_draft_if_it_does_not_know_the_named_one(draft: str) -> None:
    schema = {"$schema": draft, "prefixItems": [{"type": "null"}]}

    assert judge(schema, [None]) is MATCHES
    assert judge(schema, [1]) is DIFFERS


def test_a_part_that_names_another_draft_follows_that() -> None:
    part = {"$schema": DRAFT_4, "maximum": 3, "exclusiveMaximum": True}
    schema = {"properties": {"a": {"$ref": "#/$defs/part"}, "b": {"exclusiveMaximum": 3}}, "$defs": {"part": part}}

    # The whole is checked as a schema of its own draft, in which the part is none.
    assert judge(schema, {"a": 2}) is UNUSABLE
    hidden = {"properties": {"a": {"$ref": "#/x-parts/part"}, "b": {"exclusiveMaximum": 3}}, "x-parts": {"part": part}}
    assert judge(hidden, {"a": 2, "b": 2}) is MATCHES
    assert judge(hidden, {"a": 3}) is DIFFERS
    assert judge(hidden, {"b": 3}) is DIFFERS


@pytest.mark.parametrize("name", ["email", "ipv4", "date", "date-time", "uri", "regex", "unheard-of"])
def test_a_format_is_no_rule(name: str) -> None:
    assert judge({"format": name}, "(") is MATCHES


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"type": 1},
        {"required": "a"},
        {"properties": []},
        {"properties": {"a": 1}},
        {"minimum": "1"},
        {"minLength": -1},
        {"multipleOf": 0},
        {"enum": 1},
        {"allOf": []},
        {"pattern": "("},
        {"pattern": 1},
        {"not": {"items": {"pattern": "*"}}},
        {"patternProperties": {"[": {}}},
        {"$schema": 1},
        {"$id": 1},
        {"$ref": 1},
        {"$defs": {"unused": {"type": "text"}}},
        {"$schema": DRAFT_3, "type": {"type": "string"}},
        {"$schema": DRAFT_4, "required": []},
        {"a": {1, 2}},
        {("a",): 1},
        {"maximum": 10**5000},
        {"not": nest(5000)},
    ],
)
def test_a_schema_that_cannot_be_compiled_is_unusable(schema: Schema) -> None:
    assert judge(schema, {}) is UNUSABLE
    assert judge(schema, {}) is UNUSABLE


@pytest.mark.parametrize("keyword", ["default", "examples", "const", "enum", "x-own"])
def test_what_only_looks_like_a_schema_is_none(keyword: str) -> None:
    assert judge({"not": {keyword: [{"pattern": "(", "type": 1, "$ref": "#/nowhere"}]}}, 1) in {MATCHES, DIFFERS}


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1, True], MATCHES),
        ([0, False], MATCHES),
        ([1, "1"], MATCHES),
        (["null", None], MATCHES),
        ([1, 1.0], DIFFERS),
        ([0, -0.0], DIFFERS),
        ([10**400, 10**400 + 1], MATCHES),
        ([2**53, 2**53 + 1.0], DIFFERS),
        ([0.1, 0.1], DIFFERS),
        ([float("inf"), float("inf")], DIFFERS),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], DIFFERS),
        ([{"a": 1, "b": 2}, {"a": 2, "b": 1}], MATCHES),
        ([{"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}], DIFFERS),
        ([{"a": [1]}, {"a": [True]}], MATCHES),
        ([[1, 2], [2, 1]], MATCHES),
        ([[], {}], MATCHES),
        ([[[]], [[], []]], MATCHES),
        ([["a", "b"], ["a", ["b"]]], MATCHES),
        ([["[1", "x"], [["x"]]], MATCHES),
        ([{"a": "b"}, ["a", "b"]], MATCHES),
        ([[1, 2], ["1", "2"]], MATCHES),
        (["\ud800", "\ud800"], DIFFERS),
    ],
)
def test_unique_values_are_told_apart_as_json(values: object, verdict: SchemaVerdict) -> None:
    assert judge({"uniqueItems": True}, values) is verdict


@pytest.mark.parametrize(
    ("divisor", "value", "verdict"),
    [
        (0.5, 10**4000, MATCHES),
        (0.5, 10**4000 + 1, MATCHES),
        (4.0, 10**4000 + 1, DIFFERS),
        (1e-320, 10**4000, DIFFERS),
        (0.5, 1e308, MATCHES),
        (1e-300, 1e300, DIFFERS),
        (3, 3 * 10**4000, MATCHES),
        (10**4000, 10**4001, MATCHES),
        (0.1, float("inf"), DIFFERS),
        (3, float("inf"), DIFFERS),
        (1, True, MATCHES),
    ],
)
def test_multiples_of_extreme_numbers(divisor: float, value: object, verdict: SchemaVerdict) -> None:
    assert judge({"multipleOf": divisor}, value) is verdict
    assert judge({"$schema": DRAFT_3, "divisibleBy": divisor}, value) is verdict


def test_a_schema_that_could_not_be_compiled_in_time_is_compiled_when_there_is_time() -> None:
    schema = {"properties": {"of this test": {"type": "null"}}}

    assert judge(schema, {}, seconds=1e-9) is UNUSABLE
    assert judge(schema, {}) is MATCHES


def test_a_schema_is_what_it_was_when_it_is_changed_afterwards() -> None:
    schema: dict[str, object] = {"items": {"type": "null"}}
    assert judge(schema, [1]) is DIFFERS

    schema["items"] = {}

    assert judge(schema, [1]) is MATCHES


def test_keeps_the_schemas_used_last_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "KEPT_BYTES", 10)
    monkeypatch.setattr(judging, "MOST_KEPT_BYTES_OF_ONE", 5)
    shelf = judging._Shelf()

    for text in ("1111", "2222", "1111", "333333"):
        shelf.keep(text, SchemaVerdict.UNUSABLE)
    shelf.find("1111")
    shelf.keep("4444", SchemaVerdict.UNUSABLE)

    assert [shelf.find(text) for text in ("1111", "2222", "333333", "4444")] == [UNUSABLE, None, None, UNUSABLE]


@settings(max_examples=100)
@given(schema=schemas(), value=VALUES)
def test_says_of_ordinary_schemas_and_values_what_the_library_says(schema: Schema, value: object) -> None:
    # In the order of names, in which a schema is compiled: it decides what is met first, a fault or a circle.
    schema = json.loads(json.dumps(schema, sort_keys=True))
    library = validator_for(schema)
    try:
        library.check_schema(schema)
        is_valid = library(schema, registry=Registry()).is_valid(value)
    except (SchemaError, Unresolvable):
        expected = UNUSABLE
    except (TypeError, RecursionError):
        # A few of the library's keywords stumble over booleans where there usually are lists, all over circles.
        return
    else:
        expected = MATCHES if is_valid else DIFFERS

    assert judge(schema, value) is expected
