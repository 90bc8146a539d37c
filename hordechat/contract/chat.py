"""The body of a chat submit: its documented keys, and the reading of it into a submission.

Of several faults the first of this order is named (RFS-34): unknown keys, wrong types and ranges, unknown
horde keys, the count of messages, the messages in order, the total of their text, conflicts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, SkipValidation, WithJsonSchema, field_validator

from hordechat.contract.limits import (
    DEFAULT_CHAT_OUTPUT_TOKENS,
    MAX_CHAT_MESSAGE_COUNT,
    MAX_CHAT_MODEL_COUNT,
    MAX_CHAT_OUTPUT_TOKENS,
    MAX_CHAT_TEXT_BYTES,
    MAX_MESSAGE_NAME_CHARACTERS,
    MAX_MODEL_NAME_CHARACTERS,
    MAX_STOP_SEQUENCE_CHARACTERS,
    MAX_STOP_SEQUENCES,
    MIN_OUTPUT_TOKENS,
)
from hordechat.contract.refusals import (
    BadRequest,
    ChatRequestConflict,
    ExcessiveStopSequence,
    StrictModel,
    StringFirst,
    Strings,
    TooManyStopSequences,
    UnsupportedChatParameter,
    validate,
)
from hordechat.contract.vocabulary import ReasoningEffort, Role

MessageContent = str | list[dict[str, str]]

ModelName = Annotated[str, Field(min_length=1, max_length=MAX_MODEL_NAME_CHARACTERS)]
OutputTokens = Annotated[int, Field(ge=MIN_OUTPUT_TOKENS, le=MAX_CHAT_OUTPUT_TOKENS)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
StopSequences = Annotated[
    Strings,
    # One type inside, so that a fault is reported under `stop` and not under each form of it.
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class TextPart(StrictModel):
    """A piece of a message's content."""

    type: Literal["text"]
    text: str


class ChatMessage(StrictModel):
    """One message of the conversation, as a client sends it."""

    model_config = ConfigDict(extra="forbid")

    role: Role = Field(description="`developer` is stored and sent to workers as `system`.")
    content: str | list[TextPart]
    name: str | None = Field(None, min_length=1, max_length=MAX_MESSAGE_NAME_CHARACTERS)


class ChatHordeOptions(StrictModel):
    """Options OpenAI has no key for."""

    # An unknown key is refused by `parse`, once: the model would report each, and a body holds a million.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    only: Strings | None = Field(None, min_length=1, description="Only these workers serve the request.")
    ignore: Strings | None = Field(None, min_length=1, description="These workers never serve the request.")
    trusted_workers: bool = False
    validated_backends: bool = False
    slow_workers: bool = True
    max_context_length: int | None = Field(None, ge=1)
    context_fit: Literal["grow", "reject", "truncate_oldest"] = "truncate_oldest"
    conformance: Literal["strict", "best_effort"] = "strict"
    openai_guards: bool = False
    include_reasoning: bool = True
    availability_mode: Literal["wait", "fail_fast"] = "wait"
    max_kudos: int | None = Field(None, ge=1)
    dry_run: bool = False
    operation_key: UUID | None = Field(None, strict=False)


class ChatBody(StrictModel):
    """The JSON body of `POST generate/chat/async`: OpenAI's chat completion keys and one object of our own."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"model": "demo/echo", "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 64},
            ]
        },
    )

    model: ModelName | None = Field(
        None, description="The model the request accepts; exactly one of `model` and `models`."
    )
    models: Annotated[list[ModelName], Field(fail_fast=True)] | None = Field(
        None, min_length=1, max_length=MAX_CHAT_MODEL_COUNT
    )
    messages: Annotated[SkipValidation[list[ChatMessage]], Field(description="The conversation, oldest message first.")]
    max_tokens: OutputTokens | None = None
    max_completion_tokens: OutputTokens | None = None
    temperature: float | None = Field(None, ge=0, le=5)
    top_p: float | None = Field(None, ge=0.001, le=1)
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    reasoning_effort: Annotated[ReasoningEffort, Field(strict=False), StringFirst] | None = None
    stop: StopSequences | None = None
    n: int | None = None
    stream: bool | None = None
    stream_options: object = Field(None, description="Accepted and not applied.")
    user: object = Field(None, description="Accepted and not applied.")
    metadata: object = Field(None, description="Accepted and not applied.")
    tools: list[object] | None = None
    tool_choice: object = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, object] | None = None
    horde: ChatHordeOptions = Field(default_factory=ChatHordeOptions)

    @field_validator("horde", mode="before")
    @classmethod
    def _default_horde(cls, value: object) -> object:
        return {} if value is None else value


@dataclass(frozen=True, kw_only=True)
class StoredMessage:
    """One message in the form that is stored and sent to workers."""

    role: Role
    content: MessageContent
    name: str | None = None

    @property
    def texts(self) -> list[str]:
        """The texts of the content, one for each part."""
        return [self.content] if isinstance(self.content, str) else [part["text"] for part in self.content]

    def as_json(self) -> dict[str, object]:
        """Return the message as it stands in the database and in a job's payload."""
        message: dict[str, object] = {"role": self.role.value, "content": self.content}
        return message if self.name is None else {**message, "name": self.name}


@dataclass(frozen=True, kw_only=True)
class ChatSubmission:
    """A chat body that was judged: every value in range, every default applied."""

    body: ChatBody
    models: tuple[str, ...]
    names_one_model: bool
    """Whether the client sent `model`, which refusals quote instead of a place in `models`."""
    messages: tuple[StoredMessage, ...]
    max_length: int
    stop_sequence: tuple[str, ...]


def parse(body: Mapping[str, object]) -> ChatSubmission:
    """Judge a chat body.

    Raises:
        UnsupportedChatParameter: an unknown key or value, or a limit passed; the message holds its path.
        InvalidPayload, BadRequest: a wrong shape, type or range.
        ChatRequestConflict: values that contradict each other.
        TooManyStopSequences, ExcessiveStopSequence: the totals of `stop`.
    """
    for key in body:
        if key not in ChatBody.model_fields:
            raise UnsupportedChatParameter.key(key)
    if "reasoning_effort" in body and body["reasoning_effort"] is None:
        raise BadRequest("'reasoning_effort' has to be one of " + ", ".join(ReasoningEffort) + ".")
    checked = validate(ChatBody, body)
    horde = body.get("horde")
    for key in horde if isinstance(horde, dict) else ():
        if key not in ChatHordeOptions.model_fields:
            raise UnsupportedChatParameter.key(f"horde.{key}")
    messages = _read_messages(checked.messages)
    if checked.n not in {None, 1}:
        raise UnsupportedChatParameter.value("n", checked.n)
    if checked.horde.only is not None and checked.horde.ignore is not None:
        raise ChatRequestConflict("'horde.only' and 'horde.ignore' cannot be sent together.")
    return ChatSubmission(
        body=checked,
        models=_read_models(checked),
        names_one_model=checked.models is None,
        messages=messages,
        max_length=_read_max_length(checked),
        stop_sequence=_read_stop(checked.stop),
    )


def _read_models(body: ChatBody) -> tuple[str, ...]:
    if body.model is not None and body.models is not None:
        raise ChatRequestConflict("'model' and 'models' cannot be sent together.")
    if body.model is not None:
        return (body.model,)
    if body.models is None:
        raise BadRequest("One of 'model' and 'models' is required.")
    if len(set(body.models)) < len(body.models):
        raise BadRequest("'models' lists a model twice.")
    return tuple(body.models)


def _read_max_length(body: ChatBody) -> int:
    sent = {value for value in (body.max_tokens, body.max_completion_tokens) if value is not None}
    if len(sent) > 1:
        raise ChatRequestConflict("'max_tokens' and 'max_completion_tokens' differ.")
    return sent.pop() if sent else DEFAULT_CHAT_OUTPUT_TOKENS


def _read_stop(stop: list[str] | None) -> tuple[str, ...]:
    sequences = tuple(stop or ())
    different = set(sequences)
    if len(different) > MAX_STOP_SEQUENCES:
        raise TooManyStopSequences(f"'stop' holds more than {MAX_STOP_SEQUENCES} different sequences.")
    if sum(map(len, different)) > MAX_STOP_SEQUENCE_CHARACTERS:
        raise ExcessiveStopSequence(
            f"The sequences of 'stop' hold more than {MAX_STOP_SEQUENCE_CHARACTERS} characters."
        )
    return sequences


def _read_messages(raw: object) -> tuple[StoredMessage, ...]:
    if not isinstance(raw, list) or not all(isinstance(message, dict) for message in raw):
        raise BadRequest("'messages' has to be a list of objects.")
    if not raw:
        raise BadRequest("'messages' has to hold at least one message.")
    if len(raw) > MAX_CHAT_MESSAGE_COUNT:
        raise UnsupportedChatParameter(f"messages holds more than {MAX_CHAT_MESSAGE_COUNT} messages.")
    messages = tuple(_read_message(f"messages[{index}]", message) for index, message in enumerate(raw))
    if sum(len(text.encode()) for message in messages for text in message.texts) > MAX_CHAT_TEXT_BYTES:
        raise UnsupportedChatParameter(f"messages holds more than {MAX_CHAT_TEXT_BYTES} bytes of text.")
    return messages


def _read_message(path: str, raw: Mapping[str, object]) -> StoredMessage:
    role = raw.get("role")
    if not isinstance(role, str):
        raise BadRequest(f"'{path}.role' has to be a string.")
    if role not in set(Role):
        raise UnsupportedChatParameter.value(f"{path}.role", role)
    if role == Role.TOOL:
        raise UnsupportedChatParameter.not_yet(f"{path}.role={role}")
    for key in raw:
        if key == "tool_calls" and role == Role.ASSISTANT:
            raise UnsupportedChatParameter.not_yet(f"{path}.{key}")
        if key not in ChatMessage.model_fields:
            raise UnsupportedChatParameter.key(f"{path}.{key}")
    name = raw.get("name")
    if "name" in raw and not (isinstance(name, str) and 1 <= len(name) <= MAX_MESSAGE_NAME_CHARACTERS):
        raise BadRequest(f"'{path}.name' has to be a string of 1 to {MAX_MESSAGE_NAME_CHARACTERS} characters.")
    return StoredMessage(
        role=Role.SYSTEM if role == Role.DEVELOPER else Role(role),
        content=_read_content(f"{path}.content", raw.get("content"), role=Role(role)),
        name=name if isinstance(name, str) else None,
    )


def _read_content(path: str, raw: object, *, role: Role) -> MessageContent:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, list) or not raw:
        raise BadRequest(f"'{path}' has to be a string or a list of parts.")
    return [_read_part(f"{path}[{index}]", part, role=role) for index, part in enumerate(raw)]


def _read_part(path: str, raw: object, *, role: Role) -> dict[str, str]:
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise BadRequest(f"'{path}' has to be an object with a 'type'.")
    if raw["type"] == "image_url" and role == Role.USER:
        raise UnsupportedChatParameter.not_yet(f"{path}.type=image_url")
    if raw["type"] != "text":
        raise UnsupportedChatParameter.value(f"{path}.type", raw["type"])
    for key in raw:
        if key not in TextPart.model_fields:
            raise UnsupportedChatParameter.key(f"{path}.{key}")
    if not isinstance(raw.get("text"), str):
        raise BadRequest(f"'{path}.text' has to be a string.")
    return {"type": "text", "text": raw["text"]}
