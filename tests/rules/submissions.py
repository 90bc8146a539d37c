"""Submissions and conversations as the tests of rules write them down."""

from collections.abc import Iterable

from hordechat.contract.chat import ChatHordeOptions, ChatSubmission, Message
from hordechat.contract.chat.submission import (
    ImagePart,
    JsonObject,
    ResponseFormat,
    Sampling,
    TextPart,
    Tool,
    ToolCall,
    ToolChoice,
)
from hordechat.contract.vocabulary import Conformance, Role

IMAGE = ImagePart(url="https://images.example/cat.jpg")
WEATHER: JsonObject = {
    "type": "function",
    "function": {"name": "lookup_weather", "parameters": {"type": "object", "description": "Wo gäbe es Regen?"}},
}
CLOCK: JsonObject = {"function": {"name": "read_clock"}, "type": "function"}
NONE = ToolChoice(mode="none")
AUTO = ToolChoice(mode="auto")
REQUIRED = ToolChoice(mode="required")
JSON_OBJECT = ResponseFormat(type="json_object", is_strict=False, document={"type": "json_object"})
JSON_SCHEMA: JsonObject = {"type": "json_schema", "json_schema": {"name": "colour", "schema": {"type": "object"}}}
LOOSE = ResponseFormat(type="json_schema", is_strict=False, document=JSON_SCHEMA)
STRICT_SCHEMA: JsonObject = {
    "type": "json_schema",
    "json_schema": {
        "name": "colour",
        "strict": True,
        "schema": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    },
}
STRICT = ResponseFormat(type="json_schema", is_strict=True, document=STRICT_SCHEMA)


def user(text: str = "Hello") -> Message:
    return Message(role=Role.USER, content=text)


def system(text: str = "Be brief.") -> Message:
    return Message(role=Role.SYSTEM, content=text)


def assistant(text: str = "Good day") -> Message:
    return Message(role=Role.ASSISTANT, content=text)


def calls(*ids: str, content: str | None = None) -> Message:
    made = tuple(ToolCall(id=call_id, name="read_clock", arguments="{}") for call_id in ids)
    return Message(role=Role.ASSISTANT, content=content, tool_calls=made)


def answer(call_id: str, text: str = "noon") -> Message:
    return Message(role=Role.TOOL, content=text, tool_call_id=call_id)


def pictures(count: int = 1) -> Message:
    return Message(role=Role.USER, content=(TextPart(text="Look"), *[IMAGE] * count))


def tools(*documents: JsonObject) -> tuple[Tool, ...]:
    return tuple(Tool(name=_name(document), document=document) for document in documents)


def function(name: str) -> ToolChoice:
    return ToolChoice(mode="function", function_name=name)


def submission(
    *,
    messages: Iterable[Message] = (user(),),
    models: tuple[str, ...] = ("demo/echo",),
    max_length: int = 512,
    sampling: Sampling = Sampling(),  # noqa: B008 - frozen
    tools: tuple[Tool, ...] = (),
    tool_choice: ToolChoice | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: ResponseFormat | None = None,
    is_streamed: bool = False,
    conformance: Conformance = Conformance.STRICT,
    horde: ChatHordeOptions | None = None,
) -> ChatSubmission:
    return ChatSubmission(
        models=models,
        names_one_model=len(models) == 1,
        messages=tuple(messages),
        max_length=max_length,
        sampling=sampling,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=parallel_tool_calls,
        response_format=response_format,
        is_streamed=is_streamed,
        horde=horde or ChatHordeOptions(conformance=conformance.value),
    )


def _name(document: JsonObject) -> str:
    named = document["function"]
    assert isinstance(named, dict)
    name = named["name"]
    assert isinstance(name, str)
    return name
