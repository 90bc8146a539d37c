"""What a chat submit asks for, judged and typed: the values everything after the parser works with."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from hordechat.contract.chat.options import ChatHordeOptions
from hordechat.contract.vocabulary import ReasoningEffort, Role

JsonObject = Mapping[str, object]


class ImageDetail(StrEnum):
    """How closely a model should look at an image."""

    AUTO = "auto"
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPart:
    """A text inside a message's content."""

    text: str

    def as_json(self) -> dict[str, object]:
        """Return the part as it is stored and sent to workers."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImagePart:
    """An image inside a user message's content: a `data:` URL or an http(s) URL."""

    url: str
    detail: ImageDetail | None = None

    def as_json(self) -> dict[str, object]:
        """Return the part as it was sent."""
        image: dict[str, object] = {"url": self.url}
        return {
            "type": "image_url",
            "image_url": image if self.detail is None else image | {"detail": self.detail.value},
        }


Part = TextPart | ImagePart


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call an assistant message of the history made."""

    id: str
    name: str
    arguments: str

    def as_json(self) -> dict[str, object]:
        """Return the call as it was sent."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message in the form that is stored: `developer` has become `system` (REQ-28)."""

    role: Role
    content: str | tuple[Part, ...] | None
    """None only on an assistant message with tool calls."""
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    @property
    def texts(self) -> list[str]:
        """The texts of the content, in order, one for each text part."""
        if self.content is None:
            return []
        if isinstance(self.content, str):
            return [self.content]
        return [part.text for part in self.content if isinstance(part, TextPart)]

    @property
    def image_count(self) -> int:
        """How many images the content holds."""
        return sum(isinstance(part, ImagePart) for part in self.parts)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as parts; a string is one text, and no content is none."""
        if self.content is None:
            return ()
        return (TextPart(text=self.content),) if isinstance(self.content, str) else self.content

    def as_json(self) -> dict[str, object]:
        """Return the message as it stands in the database and, images aside, in a job's payload."""
        content = [part.as_json() for part in self.content] if isinstance(self.content, tuple) else self.content
        message: dict[str, object] = {"role": self.role.value, "content": content}
        if self.name is not None:
            message["name"] = self.name
        if self.tool_calls:
            message["tool_calls"] = [call.as_json() for call in self.tool_calls]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        return message


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A function the model may call."""

    name: str
    document: JsonObject
    """The definition in the shape the client sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolChoice:
    """Whether, and which, tool the model has to call."""

    mode: Literal["none", "auto", "required", "function"]
    function_name: str | None = None
    """The one function of mode `function`."""

    def as_json(self) -> object:
        """Return the choice in the shape the client sent."""
        if self.mode != "function":
            return self.mode
        return {"type": "function", "function": {"name": self.function_name}}


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseFormat:
    """The format the reply's content has to have; plain text is no format at all."""

    type: Literal["json_object", "json_schema"]
    is_strict: bool
    """`json_schema.strict`: the reply has to match the schema."""
    document: JsonObject
    """The format in the shape the client sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """The sampling keys the client sent, None for those it left out."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    stop_sequence: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatSubmission:
    """A chat body that was judged: every value in range, every default applied."""

    models: tuple[str, ...]
    names_one_model: bool
    """Whether the client sent `model`, which refusals quote instead of a place in `models`."""
    messages: tuple[Message, ...]
    max_length: int
    sampling: Sampling
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    is_streamed: bool = False
    horde: ChatHordeOptions

    @property
    def forwards_tools(self) -> bool:
        """Whether a worker receives tool definitions: under `tool_choice` none it does not."""
        return bool(self.tools) and (self.tool_choice is None or self.tool_choice.mode != "none")
