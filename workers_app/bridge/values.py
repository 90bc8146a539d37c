"""The values the parts of the bridge hand to each other; what comes over a wire is parsed into these at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from hordechat.contract.vocabulary import Capability, FaultReason, FinishReason

SERVABLE = tuple(capability for capability in Capability if capability is not Capability.VISION)
"""What this bridge may declare; it takes no images."""


class Message(BaseModel):
    """One message of the conversation; keys the bridge has no use for are kept for the backend."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    role: str
    content: str | list[JsonValue] | None = None

    def texts(self) -> Iterator[str]:
        """Yield every text of the content, whether it is one string or a list of parts."""
        if isinstance(self.content, str):
            yield self.content
        for part in self.content if isinstance(self.content, list) else ():
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str):
                yield text


class Payload(BaseModel):
    """What the horde asks the model for. Every sampling field is sent, so that a backend's own defaults never apply."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    messages: tuple[Message, ...] = Field(min_length=1)
    max_length: int = Field(ge=1)
    max_context_length: int = Field(ge=1)
    temperature: float
    top_p: float
    frequency_penalty: float
    presence_penalty: float
    rep_pen: float
    top_k: int
    min_p: float
    stop_sequence: tuple[str, ...] | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    tools: tuple[dict[str, JsonValue], ...] | None = None
    tool_choice: JsonValue = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, JsonValue] | None = None

    def dump_messages(self) -> list[dict[str, JsonValue]]:
        """Return the conversation as it came, key for key."""
        return [message.model_dump(exclude_unset=True) for message in self.messages]

    def list_function_names(self) -> frozenset[str]:
        """Return the names of the functions the model may call."""
        functions = (tool.get("function") for tool in self.tools or ())
        return frozenset(str(function.get("name")) for function in functions if isinstance(function, dict))


@dataclass(frozen=True)
class Generation:
    """One try at a reply, taken from the horde."""

    id: str
    payload: Payload
    lease_seconds: float
    lease_ends: float
    """On the event loop's clock, counted from before the pop was sent."""


class FunctionCall(BaseModel):
    """The function a tool call names, with its arguments as JSON text."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: str


class ToolCall(BaseModel):
    """A function the model wants called."""

    model_config = ConfigDict(frozen=True)

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


@dataclass(frozen=True)
class Reply:
    """What the model answered. Counts the backend did not report stay None."""

    content: str | None
    finish_reason: FinishReason
    native_finish_reason: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning_content: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def characters(self) -> int:
        """How much text the reply holds, tool calls and reasoning included."""
        calls = sum(len(call.function.name) + len(call.function.arguments) for call in self.tool_calls)
        return len(self.content or "") + len(self.reasoning_content or "") + calls


class GenerationFailed(Exception):
    """There will be no reply; `note` is for the log and never holds text of the conversation."""

    def __init__(self, reason: FaultReason, note: str) -> None:
        super().__init__(f"{reason}: {note}")
        self.reason = reason
        self.note = note


class Backend(Protocol):
    """What makes the replies."""

    @property
    def features(self) -> frozenset[Capability]:
        """What the worker declares for this backend."""

    async def find_problem(self) -> str | None:
        """Return a sentence that says why no generation should be taken now, or None."""

    async def generate(self, payload: Payload) -> Reply:
        """Answer the conversation. The caller bounds the time by cancelling.

        Raises:
            GenerationFailed: there is no reply, with the reason to report.
        """

    async def close(self) -> None:
        """Give up the connections."""
