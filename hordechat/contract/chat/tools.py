"""Tools, the choice among them, and the format of the reply: their shapes, their size, their strict schemas."""

from collections.abc import Mapping
from typing import Annotated, Literal, cast

import orjson
from pydantic import Field

from hordechat.contract.chat.messages import FunctionName
from hordechat.contract.chat.schemas import check_schema, too_large
from hordechat.contract.chat.strict_schema import check_strict
from hordechat.contract.chat.submission import JsonObject, ResponseFormat, Tool, ToolChoice
from hordechat.contract.chat.values import (
    read_flag,
    read_function_name,
    read_literal,
    read_object,
    read_string,
    refuse_unknown_keys,
)
from hordechat.contract.limits import MAX_CHAT_TOOL_COUNT, MAX_CHAT_TOOL_SPEC_BYTES
from hordechat.contract.refusals import BadRequest, ClosedModel, UnsupportedChatParameter


class FunctionBody(ClosedModel):
    """What a model is told of a function."""

    name: FunctionName
    description: str = ""
    parameters: dict[str, object] = Field(default_factory=dict, description="A JSON Schema.")
    strict: bool | None = Field(None, description="True holds `parameters` to the rules of strict schemas.")


class ToolBody(ClosedModel):
    """A function the model may call."""

    type: Literal["function"]
    function: FunctionBody


class NamedFunctionBody(ClosedModel):
    """The function a choice forces."""

    name: FunctionName


class NamedToolChoiceBody(ClosedModel):
    """The choice of one function."""

    type: Literal["function"]
    function: NamedFunctionBody


class TextFormatBody(ClosedModel):
    """Plain text, as without a format."""

    type: Literal["text"]


class JsonObjectFormatBody(ClosedModel):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaBody(ClosedModel):
    """The schema of a reply."""

    name: FunctionName
    schema_: dict[str, object] = Field(alias="schema", description="A JSON Schema.")
    description: str = ""
    strict: bool | None = Field(None, description="True holds `schema` to the rules of strict schemas.")


class JsonSchemaFormatBody(ClosedModel):
    """JSON that follows a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchemaBody


ToolChoiceBody = Literal["none", "auto", "required"] | NamedToolChoiceBody
ResponseFormatBody = Annotated[
    TextFormatBody | JsonObjectFormatBody | JsonSchemaFormatBody, Field(discriminator="type")
]

CHOICES = frozenset({"none", "auto", "required"})
FORMAT_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type"}),
    "json_object": frozenset({"type"}),
    "json_schema": frozenset({"type", "json_schema"}),
}
"""The types of a response format, with the keys each may have."""
JSON_SCHEMA_KEYS = frozenset({"name", "schema", "description", "strict"})


def read_tools(sent: list[object]) -> tuple[Tool, ...]:
    """Return the definitions, in the shape the client sent; two may have the same name (TLS-44)."""
    if len(sent) > MAX_CHAT_TOOL_COUNT:
        raise UnsupportedChatParameter(f"tools holds more than {MAX_CHAT_TOOL_COUNT} tools.")
    return tuple(_read_tool(f"tools[{index}]", tool) for index, tool in enumerate(sent))


def _read_tool(path: str, sent: object) -> Tool:
    tool = read_object(path, sent)
    read_literal(f"{path}.type", tool.get("type"), known={"function"})
    refuse_unknown_keys(path, tool, known=ToolBody.model_fields)
    path = f"{path}.function"
    function = read_object(path, tool.get("function"))
    refuse_unknown_keys(path, function, known=FunctionBody.model_fields)
    name = read_function_name(f"{path}.name", function.get("name"))
    _read_description(path, function)
    if "parameters" in function:
        check_schema(f"{path}.parameters", read_object(f"{path}.parameters", function["parameters"]))
    read_flag(f"{path}.strict", function.get("strict"))
    return Tool(name=name, document=tool)


def _read_description(path: str, holder: JsonObject) -> None:
    # Writing JSON takes many times a string's own size: what is surely too long is not written to be measured.
    if "description" in holder:
        description = read_string(f"{path}.description", holder["description"])
        if len(description) > MAX_CHAT_TOOL_SPEC_BYTES:
            raise too_large()


def read_tool_choice(sent: object) -> ToolChoice | None:
    """Return the choice; null is none (TLS-06)."""
    if sent is None:
        return None
    if isinstance(sent, str):
        mode = read_literal("tool_choice", sent, known=CHOICES)
        return ToolChoice(mode=cast("Literal['none', 'auto', 'required']", mode))
    if not isinstance(sent, dict):
        raise BadRequest("'tool_choice' has to be a string or an object.")
    read_literal("tool_choice.type", sent.get("type"), known={"function"})
    refuse_unknown_keys("tool_choice", sent, known=NamedToolChoiceBody.model_fields)
    function = read_object("tool_choice.function", sent.get("function"))
    refuse_unknown_keys("tool_choice.function", function, known=NamedFunctionBody.model_fields)
    name = read_function_name("tool_choice.function.name", function.get("name"))
    return ToolChoice(mode="function", function_name=name)


def read_response_format(sent: JsonObject | None) -> ResponseFormat | None:
    """Return the format; null and plain text are none (TLS-15)."""
    if sent is None:
        return None
    kind = read_literal("response_format.type", sent.get("type"), known=FORMAT_KEYS)
    refuse_unknown_keys("response_format", sent, known=FORMAT_KEYS[kind])
    if kind == "text":
        return None
    if kind == "json_object":
        return ResponseFormat(type="json_object", is_strict=False, document=sent)
    path = "response_format.json_schema"
    json_schema = read_object(path, sent.get("json_schema"))
    refuse_unknown_keys(path, json_schema, known=JSON_SCHEMA_KEYS)
    read_function_name(f"{path}.name", json_schema.get("name"))
    _read_description(path, json_schema)
    check_schema(f"{path}.schema", read_object(f"{path}.schema", json_schema.get("schema")))
    is_strict = read_flag(f"{path}.strict", json_schema.get("strict"))
    return ResponseFormat(type="json_schema", is_strict=is_strict, document=sent)


def check_size(tools: tuple[Tool, ...], tool_choice: ToolChoice | None, response_format: ResponseFormat | None) -> None:
    """Hold the three together to their bytes; what is none counts as an empty list or null (TLS-46)."""
    specification = {
        "tools": [tool.document for tool in tools],
        "tool_choice": None if tool_choice is None else tool_choice.as_json(),
        "response_format": None if response_format is None else response_format.document,
    }
    if len(orjson.dumps(specification)) > MAX_CHAT_TOOL_SPEC_BYTES:
        raise too_large()


def check_strict_schemas(tools: tuple[Tool, ...], response_format: ResponseFormat | None) -> None:
    """Hold what is marked strict to OpenAI's structural rules (SCH-01, SCH-02)."""
    for index, tool in enumerate(tools):
        function = cast("JsonObject", tool.document["function"])
        if function.get("strict") and "parameters" in function:
            check_strict(
                f"tools[{index}].function.parameters",
                cast("JsonObject", function["parameters"]),
                subject=f"function '{tool.name}'",
            )
    if response_format is not None and response_format.is_strict:
        json_schema = cast("JsonObject", response_format.document["json_schema"])
        check_strict(
            "response_format.json_schema.schema",
            cast("JsonObject", json_schema["schema"]),
            subject=f"response_format '{json_schema['name']}'",
        )
