"""The body of a submit: first its family (chat or text), later, against the stored job, its reply or its fault."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, field_validator

from hordechat.contract.chat.submission import ToolCall
from hordechat.contract.limits import (
    MAX_CHAT_TOOL_CALL_COUNT,
    MAX_METADATA,
    MAX_METADATA_REFERENCE_CHARACTERS,
    MAX_NATIVE_FINISH_REASON_CHARACTERS,
    MAX_REASONING_BYTES,
    MAX_REPORTED_TOKENS,
    MAX_TOOL_CALL_ID_CHARACTERS,
)
from hordechat.contract.refusals import InvalidPayload, StrictModel, StringFirst, describe, path_of, validate
from hordechat.contract.reply_size import chat_reply_characters
from hordechat.contract.text import without_nul
from hordechat.contract.vocabulary import FAULTED_STATE, FinishReason, GenerationState
from hordechat.errors import ErrorCode, HordeError

CHAT_KEYS = frozenset({"message", "model_id", "finish_reason", "fault_reason"})
"""A body that carries one of these is a chat submit to the parser (SUB-18)."""

HALF_PAIR = "The reply holds half of a surrogate pair, which is no text."
KEY_OF_CHAT = "A chat job's reply carries 'message' and not 'generation'."
KEY_OF_TEXT = "A text job's reply carries 'generation' and no 'message'."


class ChatSubmitInvalid(HordeError):
    """A reply that is not shaped like one, or not like one to this job."""

    code: ClassVar = ErrorCode.CHAT_SUBMIT_INVALID


class SubmitBody(StrictModel):
    """The JSON body of `POST generate/text/submit`; keys it does not know are ignored."""

    id: str = Field(description="The generation's id, from the pop.")
    state: Literal["ok", "censored", "csam", "faulted"] = "ok"
    generation: str | None = Field(None, description="A text job's reply.")
    seed: int = Field(0, ge=-(2**63), lt=2**63, description="What a text job was generated with.")
    gen_metadata: object = Field(
        None, json_schema_extra={"type": "array"}, description="Of a text job: what its worker found in the text."
    )
    message: object = Field(None, json_schema_extra={"type": "object"}, description="A chat job's reply.")
    finish_reason: object = Field(None, json_schema_extra={"enum": list(FinishReason)})
    native_finish_reason: object = Field(None, json_schema_extra={"type": "string"})
    prompt_tokens: object = Field(None, json_schema_extra={"type": "integer"})
    completion_tokens: object = Field(None, json_schema_extra={"type": "integer"})
    reasoning_tokens: object = Field(None, json_schema_extra={"type": "integer"})
    model_id: object = Field(None, json_schema_extra={"type": "string"})
    fault_reason: object = Field(None, json_schema_extra={"type": "string"})
    _holds_half_pairs: bool = PrivateAttr(default=False)

    @property
    def is_fault(self) -> bool:
        """Whether the worker gives the job back."""
        return self.state == FAULTED_STATE

    @property
    def holds_half_pairs(self) -> bool:
        """Whether a string held half of a surrogate pair, which is no text and was replaced."""
        return self._holds_half_pairs

    def with_half_pairs(self) -> "SubmitBody":
        """Return the body with the mark that it held some."""
        marked = self.model_copy()
        marked._holds_half_pairs = True  # noqa: SLF001 - its own copy
        return marked

    @property
    def is_chat(self) -> bool:
        """Whether the parser takes the body for a chat submit."""
        return bool(self.model_fields_set & CHAT_KEYS)


class _Function(StrictModel):
    name: str
    arguments: str


class _Call(StrictModel):
    """A call as its backend minted it; `arguments` need not be JSON (SUB-47, SUB-48)."""

    id: str = Field(min_length=1, max_length=MAX_TOOL_CALL_ID_CHARACTERS)
    type: Literal["function"]
    function: _Function

    def as_call(self) -> ToolCall:
        """Return the call as it is stored, NUL characters replaced (SUB-35)."""
        name, arguments = without_nul(self.function.name), without_nul(self.function.arguments)
        return ToolCall(id=without_nul(self.id), name=name, arguments=arguments)


class _ReplyMessage(StrictModel):
    role: Literal["assistant"]
    # Before the content, which is judged by it.
    tool_calls: (
        Annotated[list[_Call], Field(fail_fast=True, min_length=1, max_length=MAX_CHAT_TOOL_CALL_COUNT)] | None
    ) = None
    content: str | None
    reasoning_content: str | None = None

    @field_validator("content")
    @classmethod
    def _require_content(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and not info.data.get("tool_calls"):
            raise ValueError("Input should be a valid string, or null beside tool_calls")
        return value

    @field_validator("reasoning_content")
    @classmethod
    def _bound_reasoning(cls, value: str | None) -> str | None:
        if value is not None and len(value.encode()) > MAX_REASONING_BYTES:
            raise ValueError(f"has to hold at most {MAX_REASONING_BYTES} bytes")
        return value


class _ReplyBody(StrictModel):
    message: _ReplyMessage
    finish_reason: Annotated[FinishReason, Field(strict=False), StringFirst]
    native_finish_reason: str | None = Field(None, max_length=MAX_NATIVE_FINISH_REASON_CHARACTERS)
    prompt_tokens: int | None = Field(None, ge=0, le=MAX_REPORTED_TOKENS)
    completion_tokens: int | None = Field(None, ge=0, le=MAX_REPORTED_TOKENS)
    reasoning_tokens: int | None = Field(None, ge=0, le=MAX_REPORTED_TOKENS)
    model_id: str

    @field_validator("finish_reason")
    @classmethod
    def _require_calls(cls, value: FinishReason, info: ValidationInfo) -> FinishReason:
        message = info.data.get("message")
        if value is FinishReason.TOOL_CALLS and not (message and message.tool_calls):
            raise ValueError("tool_calls needs a non-empty message.tool_calls")
        return value


@dataclass(frozen=True, kw_only=True)
class ChatReply:
    """A chat job's reply as it is stored; NUL characters are replaced."""

    content: str | None
    """Null only beside calls."""
    tool_calls: tuple[ToolCall, ...]
    reasoning_content: str | None
    finish_reason: FinishReason
    native_finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    model_id: str
    state: GenerationState

    @property
    def characters(self) -> int:
        """What is charged and rewarded (PRC-05)."""
        return chat_reply_characters(
            content=self.content, reasoning_content=self.reasoning_content, tool_calls=self.tool_calls
        )

    @property
    def is_empty(self) -> bool:
        """Whether the model wrote nothing; calls are a complete reply (SUB-38, SUB-39)."""
        return not self.content and not self.tool_calls

    @property
    def message(self) -> dict[str, object]:
        """The message as it stands in the database and on the status."""
        message: dict[str, object] = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            message["tool_calls"] = [call.as_json() for call in self.tool_calls]
        if self.reasoning_content is not None:
            message["reasoning_content"] = self.reasoning_content
        return message


def parse(body: Mapping[str, object], *, holds_half_pairs: bool = False) -> SubmitBody:
    """Judge what both families share; halves of surrogate pairs were replaced where there were any.

    Raises:
        InvalidPayload: no id, an unknown state, or a text submit without `generation` (SUB-19).
    """
    submit = validate(SubmitBody, body)
    if not submit.is_chat and submit.generation is None:
        raise InvalidPayload({"generation": "Field required."})
    return submit.with_half_pairs() if holds_half_pairs else submit


def check_fault(submit: SubmitBody, *, is_chat: bool) -> None:
    """Judge what a fault carries beside its state: it may hold the key of its job's family, which is not looked at.

    Raises:
        ChatSubmitInvalid: `message` for a text job, or both families' keys for a chat job (SUB-22, SUB-23).
    """
    if submit.message is None:
        return
    if not is_chat:
        raise ChatSubmitInvalid(KEY_OF_TEXT)
    if submit.generation is not None:
        raise ChatSubmitInvalid(KEY_OF_CHAT)


def read_chat_reply(submit: SubmitBody) -> ChatReply:
    """Return the reply to a chat job.

    Raises:
        ChatSubmitInvalid: the shape is wrong; the message names the fields (SUB-20..22, SUB-43..47).
    """
    if submit.generation is not None:
        raise ChatSubmitInvalid(KEY_OF_CHAT)
    if submit.holds_half_pairs:
        raise ChatSubmitInvalid(HALF_PAIR)
    sent = submit.model_dump(include=submit.model_fields_set & set(_ReplyBody.model_fields))
    try:
        reply = _ReplyBody.model_validate(sent)
    except ValidationError as error:
        findings = error.errors(include_url=False, include_context=False, include_input=False)
        faults = [f"'{path_of(finding['loc'])}': {describe(finding)}" for finding in findings]
        raise ChatSubmitInvalid("The reply is invalid: " + "; ".join(faults) + ".") from None
    reasoning = reply.message.reasoning_content
    return ChatReply(
        content=None if reply.message.content is None else without_nul(reply.message.content),
        tool_calls=tuple(call.as_call() for call in reply.message.tool_calls or ()),
        reasoning_content=None if reasoning is None else without_nul(reasoning),
        finish_reason=reply.finish_reason,
        native_finish_reason=None if reply.native_finish_reason is None else without_nul(reply.native_finish_reason),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        reasoning_tokens=reply.reasoning_tokens,
        model_id=reply.model_id,
        state=GenerationState(submit.state),
    )


class _Metadata(StrictModel):
    type: Literal["censorship"]
    value: Literal["csam"]
    ref: str | None = Field(None, max_length=MAX_METADATA_REFERENCE_CHARACTERS)

    def as_json(self) -> dict[str, object]:
        """Return the entry as it is stored, NUL characters replaced: the database's JSON holds none."""
        entry: dict[str, object] = {"type": self.type, "value": self.value}
        return entry if self.ref is None else entry | {"ref": without_nul(self.ref)}


class _TextReplyBody(StrictModel):
    gen_metadata: Annotated[list[_Metadata], Field(fail_fast=True, max_length=MAX_METADATA)] = []


@dataclass(frozen=True, kw_only=True)
class TextReply:
    """A text job's reply as it is stored; NUL characters are replaced."""

    text: str
    seed: int
    metadata: tuple[dict[str, object], ...]
    state: GenerationState

    @property
    def characters(self) -> int:
        """What is charged and rewarded."""
        return len(self.text)

    @property
    def is_empty(self) -> bool:
        """Whether the model wrote nothing."""
        return not self.text


def read_text_reply(submit: SubmitBody) -> TextReply:
    """Return the reply to a text job; stray keys of a chat submit are ignored (SUB-50).

    Raises:
        ChatSubmitInvalid: it carries a chat reply, or none at all (SUB-23, SUB-50).
        InvalidPayload: the metadata.
    """
    if submit.message is not None or submit.generation is None:
        raise ChatSubmitInvalid(KEY_OF_TEXT)
    if submit.holds_half_pairs:
        raise InvalidPayload({"generation": HALF_PAIR})
    sent = {} if submit.gen_metadata is None else {"gen_metadata": submit.gen_metadata}
    found = validate(_TextReplyBody, sent).gen_metadata
    is_reported = bool(found) and submit.state == GenerationState.OK.value
    return TextReply(
        text=without_nul(submit.generation),
        seed=submit.seed,
        metadata=tuple(each.as_json() for each in found),
        state=GenerationState.CSAM if is_reported else GenerationState(submit.state),
    )


class SubmitAnswer(StrictModel):
    """What a submit answers."""

    reward: float = Field(description="Kudos the worker's owner earned; 0 for a job given back.")
