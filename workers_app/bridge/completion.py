"""The mapping between a payload, OpenAI's chat completions in their dialects, and a reply; nothing here is sent."""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from hordechat.contract.limits import MAX_NATIVE_FINISH_REASON_CHARACTERS, MAX_REPORTED_TOKENS
from hordechat.contract.vocabulary import FaultReason, FinishReason
from workers_app.bridge import wire
from workers_app.bridge.values import (
    FunctionCall,
    GenerationFailed,
    Payload,
    Reply,
    ToolCall,
)

FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
}

_OVERFLOW = re.compile(rb"context.{0,20}(length|size|window)|exceed_context", re.IGNORECASE | re.DOTALL)
_GRAMMAR = re.compile(rb"grammar|schema", re.IGNORECASE)
_THINK = re.compile(r"\s*<think>(?P<reasoning>.*?)(</think>\s*|\Z)", re.DOTALL)
_ERROR_BYTES_READ = 4096


class Kind(StrEnum):
    """Which server stands behind the address; decides the spelling of sampling keys and how a prompt is counted."""

    OPENAI = "openai"
    LLAMACPP = "llamacpp"
    VLLM = "vllm"
    KOBOLDCPP = "koboldcpp"


@dataclass(frozen=True)
class Dialect:
    """How one kind of server spells what OpenAI's API has no word for."""

    repetition_key: str
    top_k_off: int
    sends_neutral: bool
    """Whether neutral values are sent too, so that the server's own defaults do not apply."""
    counts_prompts: bool
    """Whether the server counts the tokens of a conversation."""


DIALECTS: Mapping[Kind, Dialect] = {
    # Servers that know only OpenAI's own keys refuse others, so those are sent only when they change something.
    Kind.OPENAI: Dialect("repetition_penalty", 0, sends_neutral=False, counts_prompts=False),
    Kind.LLAMACPP: Dialect("repeat_penalty", 0, sends_neutral=True, counts_prompts=True),
    Kind.VLLM: Dialect("repetition_penalty", -1, sends_neutral=True, counts_prompts=True),
    Kind.KOBOLDCPP: Dialect("rep_pen", 0, sends_neutral=True, counts_prompts=False),
}


class _CompletionMessage(BaseModel):
    content: str | None = None
    # Any: a backend may send `null`, an object for the arguments, or no id; `_read_calls` makes calls of it.
    tool_calls: list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(BaseModel):
    message: _CompletionMessage
    finish_reason: str | None = None


class _Completion(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    choices: list[_Choice] = Field(min_length=1)
    usage: JsonValue = None


def build_request(payload: Payload, *, model: str, kind: Kind) -> dict[str, JsonValue]:
    """Return the body of a chat completion that asks for what the payload asks for."""
    body: dict[str, JsonValue] = {
        "model": model,
        "messages": list(payload.dump_messages()),
        "max_tokens": payload.max_length,
        "temperature": payload.temperature,
        "top_p": payload.top_p,
        "presence_penalty": payload.presence_penalty,
        "frequency_penalty": payload.frequency_penalty,
        "stream": False,
    }
    optional: dict[str, JsonValue] = {
        "stop": list(payload.stop_sequence) if payload.stop_sequence else None,
        "seed": payload.seed,
        "reasoning_effort": payload.reasoning_effort,
        "tools": list(payload.tools) if payload.tools else None,
        "tool_choice": payload.tool_choice,
        "parallel_tool_calls": payload.parallel_tool_calls,
        "response_format": payload.response_format,
    }
    body.update({key: value for key, value in optional.items() if value is not None})
    dialect = DIALECTS[kind]
    if dialect.sends_neutral or payload.rep_pen != 1:
        body[dialect.repetition_key] = payload.rep_pen
    if dialect.sends_neutral or payload.top_k:
        body["top_k"] = payload.top_k or dialect.top_k_off
    if dialect.sends_neutral or payload.min_p:
        body["min_p"] = payload.min_p
    return body


def read_completion(value: object, payload: Payload) -> Reply:
    """Return the reply an answer holds.

    Raises:
        GenerationFailed: the answer is no chat completion, or calls a function nobody offered.
    """
    try:
        completion = _Completion.model_validate(value)
    except ValidationError:
        raise GenerationFailed(FaultReason.GENERATION_ERROR, "the backend's answer is no chat completion") from None
    choice = completion.choices[0]
    calls = _read_calls(choice.message.tool_calls or [])
    if any(call.function.name not in payload.list_function_names() for call in calls):
        raise GenerationFailed(FaultReason.TOOL_VIOLATION, "the model called a function that was not offered")
    content, reasoning = choice.message.content, choice.message.reasoning_content or choice.message.reasoning
    if content and not reasoning:
        content, reasoning = split_reasoning(content)
    if content is None and not calls:
        content = ""
    native = choice.finish_reason or None
    finish_reason = FINISH_REASONS.get(native or "stop", FinishReason.STOP)
    if finish_reason is FinishReason.TOOL_CALLS and not calls:
        finish_reason = FinishReason.STOP
    return Reply(
        content=content,
        finish_reason=finish_reason,
        native_finish_reason=native[:MAX_NATIVE_FINISH_REASON_CHARACTERS] if native else None,
        tool_calls=calls,
        reasoning_content=reasoning or None,
        prompt_tokens=_read_count(completion.usage, "prompt_tokens"),
        completion_tokens=_read_count(completion.usage, "completion_tokens"),
        reasoning_tokens=_read_count(completion.usage, "completion_tokens_details", "reasoning_tokens"),
    )


def split_reasoning(content: str) -> tuple[str, str | None]:
    """Part a leading `<think>` block, closed or cut off, from the answer that follows it."""
    match = _THINK.match(content)
    if match is None:
        return content, None
    return content[match.end() :], match["reasoning"].strip() or None


def _read_calls(calls: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
    """Return the calls with what some backends leave out put right: ids, unique ones, and arguments as text."""
    result: dict[str, ToolCall] = {}
    for call in calls:
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise GenerationFailed(FaultReason.GENERATION_ERROR, "the backend's tool call names no function")
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments or {}, ensure_ascii=False)
        identifier = call.get("id")
        if not isinstance(identifier, str) or not identifier or identifier in result:
            identifier = f"call_{secrets.token_hex(12)}"
        result[identifier] = ToolCall(id=identifier, function=FunctionCall(name=function["name"], arguments=arguments))
    return tuple(result.values())


def _read_count(value: JsonValue, *path: str) -> int | None:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_REPORTED_TOKENS
    return value if isinstance(value, int) and is_count else None


def explain_failure(answer: wire.Answer, payload: Payload) -> GenerationFailed:
    """Return why a backend that answered with an error made no reply; its words may quote the prompt."""
    excerpt = answer.body[:_ERROR_BYTES_READ]
    note = f"the backend answered {answer.status}"
    if _OVERFLOW.search(excerpt):
        return GenerationFailed(FaultReason.PROMPT_OVERFLOW, note)
    if (payload.tools or payload.response_format) and _GRAMMAR.search(excerpt):
        return GenerationFailed(FaultReason.UNBUILDABLE_GRAMMAR, note)
    return GenerationFailed(FaultReason.GENERATION_ERROR, note)
