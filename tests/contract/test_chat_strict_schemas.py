"""Strict schemas follow OpenAI's structural rules: each object is closed, and requires all its properties."""

from typing import Any

import pytest

from tests.contract.bodies import limited, parse, refuse, said, tool

OPEN = "'additionalProperties' is required to be supplied and to be false."
STRING = {"type": "string"}
CLOSED = {"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": False}
BARE = {"type": "object"}
"""An object schema that breaks the first rule."""


def missing(name: str) -> str:
    return (
        f"'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'."
    )


def closed(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def as_format(schema: object, *, strict: bool | None = True) -> dict[str, Any]:
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "colour", "schema": schema, "strict": strict},
        }
    }


def as_tool(schema: object, *, strict: bool | None = True) -> dict[str, Any]:
    return {"tools": [tool("other"), tool("get_weather", parameters=schema, strict=strict)]}


FORMAT = "response_format.json_schema.schema: Invalid schema for response_format 'colour': In context="
TOOL = "tools[1].function.parameters: Invalid schema for function 'get_weather': In context="

BREAKS = [
    # a schema, the context of its first break, and what is said of it
    pytest.param(BARE, "()", OPEN, marks=pytest.mark.spec("SCH-03", "SCH-05", "SCH-11", "SCH-20")),
    pytest.param({**CLOSED, "additionalProperties": True}, "()", OPEN, marks=pytest.mark.spec("SCH-03")),
    pytest.param({**CLOSED, "additionalProperties": 0}, "()", OPEN, marks=pytest.mark.spec("SCH-03")),
    pytest.param({**CLOSED, "additionalProperties": {}}, "()", OPEN, marks=pytest.mark.spec("SCH-03")),
    pytest.param({**CLOSED, "additionalProperties": None}, "()", OPEN, marks=pytest.mark.spec("SCH-03")),
    pytest.param({**CLOSED, "required": []}, "()", missing("a"), marks=pytest.mark.spec("SCH-04", "SCH-14")),
    pytest.param({**CLOSED, "required": None}, "()", missing("a"), marks=pytest.mark.spec("SCH-04", "SCH-14")),
    pytest.param({**CLOSED, "required": "a"}, "()", missing("a"), marks=pytest.mark.spec("SCH-04")),
    pytest.param({**CLOSED, "required": [["a"], 1]}, "()", missing("a"), marks=pytest.mark.spec("SCH-04")),
    pytest.param(
        {**closed(z=STRING, b=STRING, a=STRING), "required": ["z"]},
        "()",
        missing("b"),
        marks=pytest.mark.spec("SCH-04", "SCH-17"),
    ),
    pytest.param({"type": ["null", "object"]}, "()", OPEN, marks=pytest.mark.spec("SCH-16")),
    pytest.param({"properties": {}}, "()", OPEN, marks=pytest.mark.spec("SCH-16")),
    pytest.param({"properties": 5}, "()", OPEN, marks=pytest.mark.spec("SCH-16")),
    pytest.param({"type": "string", "properties": {}}, "()", OPEN, marks=pytest.mark.spec("SCH-16")),
    pytest.param(
        closed(shade=BARE), "('properties', 'shade')", OPEN, marks=pytest.mark.spec("SCH-06", "SCH-08", "SCH-11")
    ),
    pytest.param(
        closed(a=closed(b=BARE)), "('properties', 'a', 'properties', 'b')", OPEN, marks=pytest.mark.spec("SCH-11")
    ),
    pytest.param(
        closed(a={**closed(b=STRING, c=STRING), "required": ["b"]}),
        "('properties', 'a')",
        missing("c"),
        marks=pytest.mark.spec("SCH-06", "SCH-14"),
    ),
    pytest.param({"type": "array", "items": BARE}, "('items',)", OPEN, marks=pytest.mark.spec("SCH-06", "SCH-19")),
    pytest.param({"items": [STRING, BARE]}, "('items', '1')", OPEN, marks=pytest.mark.spec("SCH-06", "SCH-19")),
    pytest.param({"$defs": {"a": BARE}}, "('$defs', 'a')", OPEN, marks=pytest.mark.spec("SCH-06", "SCH-23")),
    pytest.param({"anyOf": [BARE]}, "('anyOf', '0')", OPEN, marks=pytest.mark.spec("SCH-06", "SCH-19")),
    *[
        pytest.param({keyword: [STRING, True, BARE]}, f"('{keyword}', '2')", OPEN, marks=pytest.mark.spec("SCH-21"))
        for keyword in ("prefixItems", "oneOf", "allOf")
    ],
    *[
        pytest.param({keyword: BARE}, f"('{keyword}',)", OPEN, marks=pytest.mark.spec("SCH-21"))
        for keyword in (
            *("not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"),
        )
    ],
    *[
        pytest.param({keyword: {"k": BARE}}, f"('{keyword}', 'k')", OPEN, marks=pytest.mark.spec("SCH-21"))
        for keyword in ("definitions", "patternProperties", "dependentSchemas")
    ],
    pytest.param({**closed(a=BARE), "additionalProperties": True}, "()", OPEN, marks=pytest.mark.spec("SCH-17")),
    pytest.param({**closed(a=BARE), "required": []}, "()", missing("a"), marks=pytest.mark.spec("SCH-17")),
    pytest.param(
        {"properties": {}, "required": [], "type": "object"}, "()", OPEN, marks=pytest.mark.spec("SCH-17", "SCH-20")
    ),
    pytest.param(
        {"anyOf": [closed(a=BARE), BARE], "$defs": {"a": BARE}},
        "('anyOf', '0', 'properties', 'a')",
        OPEN,
        marks=pytest.mark.spec("SCH-17"),
    ),
    pytest.param(
        {"$defs": {"b": STRING, "a": BARE}, "anyOf": [BARE]}, "('$defs', 'a')", OPEN, marks=pytest.mark.spec("SCH-17")
    ),
    pytest.param(closed(**{"it's": BARE}), "('properties', \"it's\")", OPEN, marks=pytest.mark.spec("SCH-11")),
    pytest.param(closed(é=BARE), "('properties', 'é')", OPEN, marks=pytest.mark.spec("SCH-11")),
    pytest.param(closed(properties=BARE), "('properties', 'properties')", OPEN, marks=pytest.mark.spec("SCH-11")),
]


@pytest.mark.spec("SCH-01", "SCH-07", "SCH-08", "SCH-15")
@pytest.mark.parametrize(("schema", "context", "fault"), BREAKS)
def test_names_the_first_break_of_a_format(schema: object, context: str, fault: str) -> None:
    assert said(refuse(**as_format(schema))) == limited(f"{FORMAT}{context}, {fault}")


@pytest.mark.spec("SCH-02", "SCH-07", "SCH-09", "SCH-10", "SCH-15")
@pytest.mark.parametrize(("schema", "context", "fault"), BREAKS)
def test_names_the_first_break_of_a_tool(schema: object, context: str, fault: str) -> None:
    assert said(refuse(**as_tool(schema))) == limited(f"{TOOL}{context}, {fault}")


@pytest.mark.spec("SCH-13")
@pytest.mark.parametrize(("schema", "context", "fault"), BREAKS)
@pytest.mark.parametrize("strict", [None, False])
def test_what_is_not_strict_is_not_held_to_the_rules(
    schema: object, context: str, fault: str, strict: bool | None
) -> None:
    parse(**as_tool(schema, strict=strict), **as_format(schema, strict=strict))


SOUND = [
    pytest.param(CLOSED, marks=pytest.mark.spec("SCH-03", "SCH-04")),
    pytest.param(
        closed(a={"type": "integer", "minimum": 1, "format": "x", "pattern": "("}), marks=pytest.mark.spec("SCH-12")
    ),
    pytest.param({**CLOSED, "required": ["b", "a", "c"]}, marks=pytest.mark.spec("SCH-18")),
    pytest.param({"type": "object", "additionalProperties": False}, marks=pytest.mark.spec("SCH-20")),
    pytest.param({"type": "object", "properties": {}, "additionalProperties": False}, marks=pytest.mark.spec("SCH-20")),
    pytest.param(
        {"enum": [BARE], "const": BARE, "default": BARE, "examples": [BARE], "x-note": BARE},
        marks=pytest.mark.spec("SCH-21"),
    ),
    pytest.param({"$ref": "#/$defs/a", "$defs": {"a": CLOSED}}, marks=pytest.mark.spec("SCH-23")),
    pytest.param({"$ref": "#/properties/x"}, marks=pytest.mark.spec("SCH-23")),
    *[
        pytest.param(schema, marks=pytest.mark.spec("SCH-24"))
        for schema in (
            {},
            STRING,
            {"type": "array", "items": CLOSED},
            {"anyOf": [CLOSED, {"type": "null"}]},
            {"type": ["string", "null"]},
        )
    ],
    pytest.param({"items": True, "anyOf": {}, "$defs": [BARE], "not": [BARE]}, marks=pytest.mark.spec("SCH-21")),
    pytest.param(closed(additionalProperties={"type": "boolean"}, required=STRING), marks=pytest.mark.spec("SCH-03")),
]


@pytest.mark.parametrize("schema", SOUND)
def test_takes_what_keeps_the_rules(schema: object) -> None:
    parse(**as_tool(schema), **as_format(schema))


@pytest.mark.spec("SCH-22")
def test_a_strict_tool_needs_no_parameters() -> None:
    parse(tools=[tool(strict=True)])


@pytest.mark.spec("SCH-25")
def test_nesting_comes_before_the_rules() -> None:
    deep: object = {}
    for _ in range(23):
        deep = {"properties": deep}

    assert refuse(**as_format(deep)).message.startswith("response_format.json_schema.schema nests more than 10 levels")


def test_a_key_is_quoted_only_as_far_as_a_person_reads() -> None:
    long = "k" * 100_000

    assert said(refuse(**as_tool(closed(**{long: BARE})))) == limited(f"{TOOL}('properties', '{long[:1000]}'), {OPEN}")
    assert said(refuse(**as_tool({**closed(**{long: STRING}), "required": []}))) == limited(
        f"{TOOL}(), {missing(long[:1000])}"
    )
