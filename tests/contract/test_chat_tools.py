"""Tools, the choice among them and the reply's format: their shapes, their limits, and what conflicts with them."""

from typing import Any

import orjson
import pytest

from hordechat.contract import chat
from hordechat.contract.chat.submission import ResponseFormat, Tool, ToolChoice
from hordechat.errors import ErrorCode
from tests.contract.bodies import ABSENT, BODY, bad, conflict, limited, nested, parse, refuse, said, tool, unsupported

NO_NAME = "has to be a string of 1 to 64 letters, digits, underscores and hyphens."
NAMES_REFUSED: tuple[object, ...] = (ABSENT, None, "", "n" * 65, "a b", "a.b", "é", "a\n", "²", 1)
NO_OBJECTS: tuple[object, ...] = (None, [], "x", 1)
TOO_LARGE = "tools, tool_choice and response_format hold more than 262144 bytes of JSON together."


def without_absent(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if each is not ABSENT}


def function(**members: object) -> dict[str, Any]:
    """Return a tool whose function has exactly these members."""
    return {"type": "function", "function": without_absent(members)}


def schema_format(**members: object) -> dict[str, Any]:
    """Return a JSON schema format with these members beside a name and a schema."""
    return {
        "type": "json_schema",
        "json_schema": without_absent({"name": "colour", "schema": {"type": "object"}, **members}),
    }


# -- Shapes ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("TLS-02", "TLS-03", "TLS-44", "TLS-45", "TLS-47")
@pytest.mark.parametrize(
    "sent",
    [
        tool("look"),
        tool("a-Z_9" * 12),
        tool("n" * 64, description="", parameters={}, strict=None),
        tool("look", description="Look around.", parameters={"type": "object"}, strict=False),
        tool("look", parameters={"type": "no such type", "$ref": 5, "pattern": "("}),
        tool("look", parameters={"minimum": 2**64 - 1, "maximum": -(2**63), "multipleOf": 1e-300, "é": [1.5, True]}),
    ],
)
def test_keeps_a_tool_as_it_was_sent(sent: dict[str, Any]) -> None:
    assert parse(tools=[sent, sent]).tools == (Tool(name=sent["function"]["name"], document=sent),) * 2


NO_STRINGS: tuple[object, ...] = (None, 1, {})
NO_FLAGS: tuple[object, ...] = (0, 1, "true", {})

TOOLS = [
    # a tool, and what is said of it
    *[(value, bad("'tools[1]' has to be an object.")) for value in NO_OBJECTS],
    ({}, bad("'tools[1].type' has to be a string.")),
    ({**tool(), "type": None}, bad("'tools[1].type' has to be a string.")),
    ({**tool(), "type": "web_search"}, unsupported("tools[1].type=web_search")),
    ({"type": "custom", "custom": {}}, unsupported("tools[1].type=custom")),
    ({**tool(), "name": "look"}, unsupported("tools[1].name")),
    ({"type": "function"}, bad("'tools[1].function' has to be an object.")),
    *[
        ({"type": "function", "function": value}, bad("'tools[1].function' has to be an object."))
        for value in NO_OBJECTS
    ],
    (tool(foo=None), unsupported("tools[1].function.foo")),
    *[(function(name=name), bad(f"'tools[1].function.name' {NO_NAME}")) for name in NAMES_REFUSED],
    *[(tool(description=value), bad("'tools[1].function.description' has to be a string.")) for value in NO_STRINGS],
    *[(tool(parameters=value), bad("'tools[1].function.parameters' has to be an object.")) for value in NO_OBJECTS],
    *[(tool(strict=value), bad("'tools[1].function.strict' has to be a boolean.")) for value in NO_FLAGS],
]


@pytest.mark.spec("TLS-02", "TLS-03", "TLS-34", "TLS-35", "TLS-37", "TLS-45")
@pytest.mark.parametrize(("sent", "refusal"), TOOLS)
def test_refuses_a_broken_tool_with_its_path(sent: object, refusal: tuple[str, str]) -> None:
    assert said(refuse(tools=[tool(), sent])) == refusal


@pytest.mark.spec("TLS-04", "TLS-29")
@pytest.mark.parametrize("tools", [None, [], ABSENT])
def test_no_tools_are_none_however_spelled(tools: object) -> None:
    assert parse(tools=tools).tools == ()
    assert chat.dump(parse(tools=tools)) == chat.dump(parse())


@pytest.mark.spec("TLS-01")
def test_takes_128_tools_and_no_more() -> None:
    assert len(parse(tools=[tool()] * 128).tools) == 128
    assert said(refuse(tools=[tool()] * 129)) == limited("tools holds more than 128 tools.")


@pytest.mark.spec("TLS-05", "TLS-30", "TLS-42")
@pytest.mark.parametrize(
    ("sent", "choice"),
    [
        ("none", ToolChoice(mode="none")),
        ("auto", ToolChoice(mode="auto")),
        ("required", ToolChoice(mode="required")),
        ({"type": "function", "function": {"name": "look"}}, ToolChoice(mode="function", function_name="look")),
    ],
)
def test_keeps_a_tool_choice_as_it_was_sent(sent: object, choice: ToolChoice) -> None:
    submission = parse(tools=[tool("other"), tool("look")], tool_choice=sent)

    assert submission.tool_choice == choice
    assert choice.as_json() == sent
    assert submission.forwards_tools is (sent != "none")


CHOICES = [
    # a tool choice, and what is said of it
    ("sometimes", unsupported("tool_choice=sometimes")),
    ("", unsupported("tool_choice=")),
    ("look", unsupported("tool_choice=look")),
    ("x" * 100, unsupported("tool_choice=" + "x" * 64)),
    *[(value, bad("'tool_choice' has to be a string or an object.")) for value in (1, True, [], ["auto"])],
    ({}, bad("'tool_choice.type' has to be a string.")),
    ({"type": "allowed_tools", "allowed_tools": {}}, unsupported("tool_choice.type=allowed_tools")),
    ({"type": "function", "function": {"name": "look"}, "name": "look"}, unsupported("tool_choice.name")),
    ({"type": "function", "name": "look"}, unsupported("tool_choice.name")),
    ({"type": "function"}, bad("'tool_choice.function' has to be an object.")),
    ({"type": "function", "function": "look"}, bad("'tool_choice.function' has to be an object.")),
    ({"type": "function", "function": {"name": "look", "a": 1}}, unsupported("tool_choice.function.a")),
    *[(function(name=name), bad(f"'tool_choice.function.name' {NO_NAME}")) for name in NAMES_REFUSED],
]


@pytest.mark.spec("TLS-05", "TLS-34", "TLS-35", "TLS-36", "TLS-37")
@pytest.mark.parametrize(("sent", "refusal"), CHOICES)
@pytest.mark.parametrize("tools", [[tool()], ABSENT], ids=["tools", "no tools"])
def test_refuses_a_broken_tool_choice_with_its_path(tools: object, sent: object, refusal: tuple[str, str]) -> None:
    assert said(refuse(tools=tools, tool_choice=sent)) == refusal


@pytest.mark.spec("TLS-09", "TLS-10", "TLS-06", "TLS-42")
def test_null_beside_tools_is_none() -> None:
    tools = [tool()]

    assert parse(tools=tools, tool_choice=None, parallel_tool_calls=None) == parse(tools=tools)
    assert parse(tools=tools, parallel_tool_calls=True).parallel_tool_calls is True
    assert parse(tools=tools, parallel_tool_calls=False).parallel_tool_calls is False
    assert parse(tools=tools, parallel_tool_calls=True) != parse(tools=tools)
    assert parse(tools=tools, tool_choice="auto") != parse(tools=tools)


@pytest.mark.spec("TLS-09")
@pytest.mark.parametrize("value", [0, 1, "true", [], {}])
def test_parallel_tool_calls_is_a_boolean(value: object) -> None:
    assert refuse(tools=[tool()], parallel_tool_calls=value).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("TLS-13", "TLS-14", "TLS-45", "TLS-47")
@pytest.mark.parametrize(
    ("sent", "is_strict"),
    [
        ({"type": "json_object"}, False),
        (schema_format(), False),
        (schema_format(strict=None), False),
        (schema_format(strict=False, description="A colour."), False),
        (schema_format(strict=True, schema={"type": "string"}), True),
        (schema_format(name="n" * 64, schema={"type": "no such type", "$schema": "x", "minimum": 0.1}), False),
        (schema_format(schema={}), False),
    ],
)
def test_keeps_a_response_format_as_it_was_sent(sent: dict[str, Any], is_strict: bool) -> None:
    assert parse(response_format=sent).response_format == ResponseFormat(
        type=sent["type"], is_strict=is_strict, document=sent
    )


@pytest.mark.spec("TLS-15", "TLS-29")
@pytest.mark.parametrize("sent", [None, {"type": "text"}, ABSENT])
def test_plain_text_is_no_format(sent: object) -> None:
    assert parse(response_format=sent).response_format is None
    assert chat.dump(parse(response_format=sent)) == chat.dump(parse())


PATH = "response_format.json_schema"

FORMATS = [
    # a response format, and what is said of it
    ({}, bad("'response_format.type' has to be a string.")),
    ({"type": 1}, bad("'response_format.type' has to be a string.")),
    ({"type": "xml"}, unsupported("response_format.type=xml")),
    ({"type": "grammar", "grammar": ""}, unsupported("response_format.type=grammar")),
    ({"type": "text", "json_schema": {}}, unsupported(PATH)),
    ({"type": "json_object", "json_schema": {}}, unsupported(PATH)),
    ({"type": "json_object", "schema": {}}, unsupported("response_format.schema")),
    ({**schema_format(), "strict": True}, unsupported("response_format.strict")),
    ({"type": "json_schema"}, bad(f"'{PATH}' has to be an object.")),
    *[({"type": "json_schema", "json_schema": value}, bad(f"'{PATH}' has to be an object.")) for value in NO_OBJECTS],
    (schema_format(foo=None), unsupported(f"{PATH}.foo")),
    *[(schema_format(name=name), bad(f"'{PATH}.name' {NO_NAME}")) for name in NAMES_REFUSED],
    *[
        (schema_format(schema=value), bad(f"'{PATH}.schema' has to be an object."))
        for value in (*NO_OBJECTS, ABSENT, True)
    ],
    *[(schema_format(description=value), bad(f"'{PATH}.description' has to be a string.")) for value in NO_STRINGS],
    *[(schema_format(strict=value), bad(f"'{PATH}.strict' has to be a boolean.")) for value in NO_FLAGS],
]


@pytest.mark.spec("TLS-13", "TLS-14", "TLS-34", "TLS-35", "TLS-37", "TLS-45")
@pytest.mark.parametrize(("sent", "refusal"), FORMATS)
def test_refuses_a_broken_response_format_with_its_path(sent: object, refusal: tuple[str, str]) -> None:
    assert said(refuse(response_format=sent)) == refusal


# -- Conflicts ---------------------------------------------------------------------------------------------------------

NEEDS_TOOLS = "Invalid value for '{0}': '{0}' is only allowed when 'tools' are specified."
NAMED = {"type": "function", "function": {"name": "look"}}


@pytest.mark.spec("TLS-07", "TLS-08", "TLS-11", "TLS-40")
@pytest.mark.parametrize("tools", [ABSENT, None, []], ids=["absent", "null", "empty"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tool_choice", "none"),
        ("tool_choice", "auto"),
        ("tool_choice", "required"),
        ("tool_choice", NAMED),
        ("parallel_tool_calls", True),
        ("parallel_tool_calls", False),
    ],
)
def test_keys_that_stand_beside_tools_conflict_without_them(tools: object, key: str, value: object) -> None:
    assert said(refuse(tools=tools, **{key: value})) == conflict(NEEDS_TOOLS.format(key))


@pytest.mark.spec("TLS-06", "TLS-10")
@pytest.mark.parametrize("tools", [ABSENT, None, []], ids=["absent", "null", "empty"])
@pytest.mark.parametrize("key", ["tool_choice", "parallel_tool_calls"])
def test_null_without_tools_is_none(tools: object, key: str) -> None:
    assert parse(tools=tools, **{key: None}) == parse()


@pytest.mark.spec("TLS-12", "TLS-41")
@pytest.mark.parametrize("tools", [[tool("other")], [tool("Look"), tool("look2")]])
def test_a_choice_of_a_function_without_definition_conflicts(tools: object) -> None:
    assert said(refuse(tools=tools, tool_choice=NAMED)) == conflict(
        "Tool choice 'look' not found in 'tools' parameter."
    )


# -- Limits ------------------------------------------------------------------------------------------------------------


def spec_bytes(**sent: object) -> int:
    whole = {"tools": sent.get("tools") or [], "tool_choice": sent.get("tool_choice")}
    return len(orjson.dumps({**whole, "response_format": sent.get("response_format")}))


@pytest.mark.spec("TLS-16", "TLS-46")
@pytest.mark.parametrize(
    ("sent", "padded"),
    [
        ({"tools": [tool(description="")], "tool_choice": "auto"}, "tools"),
        ({"tools": [tool(description=""), tool()], "response_format": {"type": "json_object"}}, "tools"),
        ({"response_format": schema_format(description="")}, "response_format"),
        ({"tools": [tool()], "response_format": schema_format(description="é")}, "response_format"),
    ],
)
def test_takes_256_kibibytes_of_compact_json_and_no_more(sent: dict[str, Any], padded: str) -> None:
    holder = sent["tools"][0]["function"] if padded == "tools" else sent["response_format"]["json_schema"]
    short = holder["description"]
    missing = 262_144 - spec_bytes(**sent)

    holder["description"] = short + "x" * missing
    assert spec_bytes(**sent) == 262_144
    parse(**sent)

    holder["description"] = short + "x" * (missing + 1)
    assert said(refuse(**sent)) == limited(TOO_LARGE)
    holder["description"] = short


@pytest.mark.spec("TLS-16", "TLS-46")
@pytest.mark.parametrize(
    "schema",
    [
        {"a": [0] * 131_000},
        {"a": ["x"] * 65_400},
        {"a": [[]] * 87_200},
        {f"{number:05}": {} for number in range(23_750)},
        {"x" * 131_000: "y" * 131_000},
    ],
    ids=["digits", "letters", "lists", "objects", "one key"],
)
def test_a_schema_that_fills_the_bytes_is_taken(schema: dict[str, Any]) -> None:
    """The walk stops before a schema is surely too large, and not before that."""
    described = tool(parameters=schema, description="")
    missing = 262_144 - spec_bytes(tools=[described])
    assert 0 <= missing < 1000

    described["function"]["description"] = "x" * missing
    parse(tools=[described])
    described["function"]["description"] = "x" * (missing + 1)
    assert said(refuse(tools=[described])) == limited(TOO_LARGE)


@pytest.mark.spec("TLS-46")
def test_non_ascii_counts_its_utf8_bytes() -> None:
    missing = 262_144 - spec_bytes(tools=[tool(description="")])

    parse(tools=[tool(description="é" * (missing // 2))])
    assert said(refuse(tools=[tool(description="é" * (missing // 2 + 1))])) == limited(TOO_LARGE)


def place_schema(where: str, schema: object, *, strict: bool | None = None) -> tuple[dict[str, Any], str]:
    """Return the keys of a body with a schema in one of its two places, and the schema's path."""
    if where == "tool":
        return {"tools": [tool(), tool(parameters=schema, strict=strict)]}, "tools[1].function.parameters"
    return {"response_format": schema_format(schema=schema, strict=strict)}, f"{PATH}.schema"


@pytest.mark.spec("TLS-17", "TLS-18", "TLS-33")
@pytest.mark.parametrize("where", ["tool", "format"])
@pytest.mark.parametrize("strict", [None, False, True])
def test_a_schema_nests_22_containers_and_no_more(where: str, strict: bool | None) -> None:
    for leaf in (None, 1, "x"):
        sent, _ = place_schema(where, nested(22, innermost=leaf), strict=strict)
        parse(**sent)
    containers: tuple[object, ...] = ({}, [], [1], {"a": 1})
    for innermost in containers:
        sent, path = place_schema(where, nested(22, innermost=innermost), strict=strict)
        assert said(refuse(**sent)) == limited(f"{path} nests more than 10 levels below its root.")


@pytest.mark.spec("TLS-33")
def test_lists_count_as_containers_and_references_are_not_followed() -> None:
    lists: object = 1
    for _ in range(21):
        lists = [lists]

    parse(tools=[tool(parameters={"a": lists})])
    parse(tools=[tool(parameters={"$ref": "#", "$defs": {"a": {"$ref": "#/$defs/a"}}})])
    assert refuse(tools=[tool(parameters={"a": [lists]})]).code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER


@pytest.mark.spec("TLS-17")
def test_ten_levels_of_properties_are_within_the_limit() -> None:
    """OpenAI counts levels of objects: ten below the root, each in the properties of the one above."""
    schema: dict[str, Any] = {"type": "object", "required": []}
    for _ in range(10):
        schema = {"type": "object", "properties": {"a": schema}}

    parse(tools=[tool(parameters=schema)])
    assert refuse(tools=[tool(parameters={"properties": {"a": schema}})]).code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER


NUMBERS = [
    # as JSON spells it, and whether it is kept
    ("18446744073709551615", True),
    ("18446744073709551616", False),
    ("18446744073709551616.0", False),
    ("184467440737095516160e-1", False),
    ("1.8446744073709552e19", False),
    ("1e300", False),
    ("9" * 300, False),
    ("-9223372036854775808", True),
    ("-18446744073709551616", False),
    ("-1e300", False),
    ("1e19", True),
    ("1e-300", True),
    ("0.1", True),
]


@pytest.mark.parametrize(("spelled", "is_kept"), NUMBERS)
@pytest.mark.parametrize("where", ["tool", "format"])
def test_a_number_that_would_be_altered_is_refused_with_its_path(where: str, spelled: str, is_kept: bool) -> None:
    schema = orjson.loads('{"properties": {"a": {"enum": ["x", ' + spelled + "]}}}")
    sent, path = place_schema(where, schema)

    if is_kept:
        assert chat.dump(parse(**sent))
    else:
        assert said(refuse(**sent)) == bad(f"'{path}.properties.a.enum[1]' is a number of 2^64 or more.")


@pytest.mark.parametrize(
    "number", [2**64, -(2**64), 10**5000, float("inf")], ids=["2^64", "-2^64", "10^5000", "infinity"]
)
def test_a_number_json_cannot_hold_is_refused_as_well(number: float) -> None:
    assert refuse(tools=[tool(parameters={"a": number})]).code is ErrorCode.BAD_REQUEST


def test_numbers_of_keys_without_effect_may_be_any() -> None:
    parse(metadata={"a": 1e300}, user=[2.0**70])


def test_free_json_is_kept_as_it_was_sent() -> None:
    text = (
        '{"model":"m","messages":[{"role":"user","content":"é"}],"max_tokens":512,"tools":[{"type":"function",'
        '"function":{"strict":null,"name":"a","parameters":{"z":1,"a":1.0,"m":{"é":[null,true,-0.0,1e-7]}}}}]}'
    )

    assert orjson.dumps(chat.dump(chat.parse(orjson.loads(text)))) == orjson.dumps(orjson.loads(text))


def test_a_body_is_not_changed_by_its_reading() -> None:
    sent = {**BODY, "tools": [tool(parameters={"a": [1]})], "response_format": schema_format()}
    before = orjson.dumps(sent)

    chat.parse(sent)

    assert orjson.dumps(sent) == before
