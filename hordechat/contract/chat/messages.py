"""The messages of a chat body: who speaks, and in which texts, images and tool calls."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from pydantic import Field

from hordechat.contract.chat.images import ImagePartBody, check_images, read_image_part
from hordechat.contract.chat.submission import JsonObject, Message, Part, TextPart, ToolCall
from hordechat.contract.chat.values import (
    read_function_name,
    read_literal,
    read_object,
    read_string,
    refuse_unknown_keys,
)
from hordechat.contract.limits import (
    FUNCTION_NAME_PATTERN,
    MAX_CHAT_MESSAGE_COUNT,
    MAX_CHAT_PART_COUNT,
    MAX_CHAT_TEXT_BYTES,
    MAX_CHAT_TOOL_CALL_COUNT,
    MAX_MESSAGE_NAME_CHARACTERS,
    MAX_TOOL_CALL_ID_CHARACTERS,
)
from hordechat.contract.refusals import BadRequest, ClosedModel, UnsupportedChatParameter
from hordechat.contract.vocabulary import Role

FunctionName = Annotated[str, Field(pattern=f"^{FUNCTION_NAME_PATTERN}$")]
ToolCallId = Annotated[str, Field(min_length=1, max_length=MAX_TOOL_CALL_ID_CHARACTERS)]


class TextPartBody(ClosedModel):
    """A piece of a message's content."""

    type: Literal["text"]
    text: str


class CalledFunctionBody(ClosedModel):
    """The function a call names."""

    name: FunctionName
    arguments: str = Field(description="JSON, as the model wrote it; not checked.")


class ToolCallBody(ClosedModel):
    """A call an assistant message of the history made."""

    id: ToolCallId
    type: Literal["function"]
    function: CalledFunctionBody


class MessageBody(ClosedModel):
    """One message of the conversation, as a client sends it."""

    role: Role = Field(description="`developer` is stored and sent to workers as `system`.")
    content: str | list[TextPartBody | ImagePartBody] | None = Field(
        None, description="May be left out beside `tool_calls` alone; images on user messages alone."
    )
    name: str | None = Field(
        None, min_length=1, max_length=MAX_MESSAGE_NAME_CHARACTERS, description="On every message but a tool's."
    )
    tool_calls: list[ToolCallBody] | None = Field(
        None, min_length=1, max_length=MAX_CHAT_TOOL_CALL_COUNT, description="On assistant messages alone."
    )
    tool_call_id: ToolCallId | None = Field(None, description="On tool messages alone, and required there.")


KNOWN_KEYS: Mapping[str, frozenset[str]] = {
    Role.SYSTEM: frozenset({"role", "content", "name"}),
    Role.DEVELOPER: frozenset({"role", "content", "name"}),
    Role.USER: frozenset({"role", "content", "name"}),
    Role.ASSISTANT: frozenset({"role", "content", "name", "tool_calls"}),
    Role.TOOL: frozenset({"role", "content", "tool_call_id"}),
}
"""The keys a message of each role may have (RFS-04, RFS-05)."""
NAME_CHARACTERS = range(1, MAX_MESSAGE_NAME_CHARACTERS + 1)
ID_CHARACTERS = range(1, MAX_TOOL_CALL_ID_CHARACTERS + 1)


def read_messages(sent: list[object]) -> tuple[Message, ...]:
    """Return the messages: their count first, then each in order, then what they hold together."""
    if not sent:
        raise BadRequest("'messages' has to hold at least one message.")
    if len(sent) > MAX_CHAT_MESSAGE_COUNT:
        raise UnsupportedChatParameter(f"messages holds more than {MAX_CHAT_MESSAGE_COUNT} messages.")
    if sum(map(_part_count, sent)) > MAX_CHAT_PART_COUNT:
        raise UnsupportedChatParameter(f"messages holds more than {MAX_CHAT_PART_COUNT} content parts.")
    messages = tuple(_read_message(f"messages[{index}]", message) for index, message in enumerate(sent))
    if sum(map(_text_bytes, messages)) > MAX_CHAT_TEXT_BYTES:
        raise UnsupportedChatParameter(f"messages holds more than {MAX_CHAT_TEXT_BYTES} bytes of text.")
    check_images(messages)
    return messages


def _part_count(message: object) -> int:
    content = message.get("content") if isinstance(message, dict) else None
    return len(content) if isinstance(content, list) else 0


def _read_message(path: str, sent: object) -> Message:
    message = read_object(path, sent)
    role = Role(read_literal(f"{path}.role", message.get("role"), known=KNOWN_KEYS))
    refuse_unknown_keys(path, message, known=KNOWN_KEYS[role])
    name = read_string(f"{path}.name", message["name"], characters=NAME_CHARACTERS) if "name" in message else None
    tool_calls = _read_tool_calls(f"{path}.tool_calls", message.get("tool_calls"))
    content = message.get("content")
    return Message(
        role=Role.SYSTEM if role is Role.DEVELOPER else role,
        content=None if content is None and tool_calls else _read_content(f"{path}.content", content, role=role),
        name=name,
        tool_calls=tool_calls,
        tool_call_id=(
            read_string(f"{path}.tool_call_id", message.get("tool_call_id"), characters=ID_CHARACTERS)
            if role is Role.TOOL
            else None
        ),
    )


def _read_content(path: str, content: object, *, role: Role) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise BadRequest(f"'{path}' has to be a string or a list of parts.")
    known = PART_READERS if role is Role.USER else TEXT_READERS
    return tuple(_read_part(f"{path}[{index}]", part, known=known) for index, part in enumerate(content))


def _read_part(path: str, sent: object, *, known: "Mapping[str, PartReader]") -> Part:
    part = read_object(path, sent)
    return known[read_literal(f"{path}.type", part.get("type"), known=known)](path, part)


def _read_text_part(path: str, part: JsonObject) -> TextPart:
    refuse_unknown_keys(path, part, known=TextPartBody.model_fields)
    return TextPart(text=read_string(f"{path}.text", part.get("text")))


PartReader = Callable[[str, JsonObject], Part]
TEXT_READERS: Mapping[str, PartReader] = {"text": _read_text_part}
PART_READERS: Mapping[str, PartReader] = {"text": _read_text_part, "image_url": read_image_part}
"""The parts of a user message; other roles have texts alone (IMG-05)."""


def _read_tool_calls(path: str, calls: object) -> tuple[ToolCall, ...]:
    """Return the calls of a message; null is the same as none, an empty list is not (TLS-38)."""
    if calls is None:
        return ()
    if not isinstance(calls, list) or not calls:
        raise BadRequest(f"'{path}' has to be a list of at least one tool call.")
    if len(calls) > MAX_CHAT_TOOL_CALL_COUNT:
        raise UnsupportedChatParameter(f"{path} holds more than {MAX_CHAT_TOOL_CALL_COUNT} tool calls.")
    return tuple(_read_tool_call(f"{path}[{index}]", call) for index, call in enumerate(calls))


def _read_tool_call(path: str, sent: object) -> ToolCall:
    call = read_object(path, sent)
    read_literal(f"{path}.type", call.get("type"), known={"function"})
    refuse_unknown_keys(path, call, known=ToolCallBody.model_fields)
    call_id = read_string(f"{path}.id", call.get("id"), characters=ID_CHARACTERS)
    function = read_object(f"{path}.function", call.get("function"))
    refuse_unknown_keys(f"{path}.function", function, known=CalledFunctionBody.model_fields)
    return ToolCall(
        id=call_id,
        name=read_function_name(f"{path}.function.name", function.get("name")),
        arguments=read_string(f"{path}.function.arguments", function.get("arguments")),
    )


def _text_bytes(message: Message) -> int:
    """Return the bytes a message adds to the text of a request (RFS-16, RFS-35)."""
    calls = sum(_utf8_bytes(call.name) + _utf8_bytes(call.arguments) for call in message.tool_calls)
    return calls + sum(map(_utf8_bytes, message.texts))


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
