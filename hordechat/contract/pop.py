"""The body of a pop, the declaration it carries, and the answer a worker gets."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from hordechat.contract.limits import (
    MAX_BRIDGE_AGENT_CHARACTERS,
    MAX_INTEGER,
    MAX_MODEL_NAME_CHARACTERS,
    MAX_POP_AMOUNT,
    MAX_WORKER_MODELS,
    MAX_WORKER_NAME_CHARACTERS,
    MAX_WORKER_THREADS,
)
from hordechat.contract.refusals import StrictModel, Strings, validate
from hordechat.contract.vocabulary import Capability, ImageTransport
from hordechat.errors import ErrorCode, HordeError

ModelName = Annotated[str, Field(min_length=3, max_length=MAX_MODEL_NAME_CHARACTERS)]


def _trim_name(name: str) -> str:
    """Return a name as it is shown; what would break or hide a line of a list is no name."""
    trimmed = name.strip()
    if not trimmed or not trimmed.isprintable():
        raise ValueError("has to hold printable characters")
    return trimmed


WorkerName = Annotated[str, Field(min_length=1, max_length=MAX_WORKER_NAME_CHARACTERS), AfterValidator(_trim_name)]
Tokens = Annotated[int, Field(ge=0, le=MAX_INTEGER)]


class ChatDeclarationInvalid(HordeError):
    """The chat fields of a pop do not fit together; the message names the field."""

    code: ClassVar = ErrorCode.CHAT_DECLARATION_INVALID


class PopBody(StrictModel):
    """The JSON body of `POST generate/text/pop`; keys it does not know are ignored, deployed workers send them."""

    name: WorkerName
    models: Annotated[list[ModelName], Field(fail_fast=True)] = Field(
        min_length=1, description=f"The models the worker runs; the first {MAX_WORKER_MODELS} count."
    )
    max_length: Tokens = Field(512, description="The longest output of a text job, in tokens.")
    max_context_length: Tokens = Field(2048, description="The longest context of a text job, in tokens.")
    bridge_agent: str = Field("unknown:0:unknown", max_length=MAX_BRIDGE_AGENT_CHARACTERS)
    threads: int = Field(1, ge=1, le=MAX_WORKER_THREADS)
    nsfw: bool = True
    amount: int = Field(1, ge=1, le=MAX_POP_AMOUNT, description="Jobs a text pop takes at most; a chat pop takes one.")
    priority_usernames: Strings = Field([], description="Users (`alias#id`) whose requests this worker serves first.")
    chat_jobs: bool = Field(False, description="The worker takes chat jobs under the declaration below.")
    prompt_jobs: bool = Field(True, description="The worker takes text jobs; false needs `chat_jobs`.")
    chat_features: object = Field(None, json_schema_extra={"type": "array", "items": {"enum": list(Capability)}})
    chat_limits: object = Field(None, json_schema_extra={"type": "object"})
    model_id: object = Field(None, json_schema_extra={"type": "string"})
    image_transports: object = Field(None, json_schema_extra={"type": "array", "items": {"enum": list(ImageTransport)}})


class _DeclarationFields(StrictModel):
    """The types of the declaration's fields, which count only when the pop declares chat jobs (DCL-37)."""

    chat_features: Strings | None = None
    chat_limits: dict[str, object] | None = None
    model_id: str | None = None
    image_transports: Strings | None = None


@dataclass(frozen=True, kw_only=True)
class ChatDeclaration:
    """What a worker declares about chat: taken from its latest pop, withdrawn by a pop without `chat_jobs`."""

    accepts_chat_jobs: bool = False
    accepts_prompt_jobs: bool = True
    features: tuple[str, ...] | None = None
    """The recognised values, sorted; None when there is no declaration."""
    max_context_length: int | None = None
    max_length: int | None = None
    tools_max_temperature: float | None = None
    model_id: str | None = None
    image_transports: tuple[str, ...] | None = None


NO_DECLARATION = ChatDeclaration()


def parse(body: Mapping[str, object]) -> PopBody:
    """Judge a pop's body, all but its declaration.

    Raises:
        InvalidPayload: fields of a wrong type or range.
    """
    return validate(PopBody, body)


def read_declaration(pop: PopBody) -> ChatDeclaration:
    """Return the declaration a pop carries.

    Raises:
        InvalidPayload: a field of the wrong JSON type (DCL-34).
        ChatDeclarationInvalid: fields that are missing or do not fit together (DCL-27..33).
    """
    if not pop.chat_jobs:
        if not pop.prompt_jobs:
            raise ChatDeclarationInvalid("'prompt_jobs' can be false only when 'chat_jobs' is true.")
        return NO_DECLARATION
    names = _DeclarationFields.model_fields
    fields = validate(_DeclarationFields, {name: getattr(pop, name) for name in names})
    if fields.chat_limits is None:
        raise ChatDeclarationInvalid("'chat_limits' is required when 'chat_jobs' is true.")
    if fields.model_id is None:
        raise ChatDeclarationInvalid("'model_id' is required when 'chat_jobs' is true.")
    if pop.models[:MAX_WORKER_MODELS].count(fields.model_id) != 1:
        raise ChatDeclarationInvalid("'model_id' has to be exactly one of 'models'.")
    return ChatDeclaration(
        accepts_chat_jobs=True,
        accepts_prompt_jobs=pop.prompt_jobs,
        features=_recognised(fields.chat_features, set(Capability)),
        max_context_length=_read_limit(fields.chat_limits, "max_context_length"),
        max_length=_read_limit(fields.chat_limits, "max_length"),
        tools_max_temperature=_read_tools_max_temperature(fields.chat_limits.get("tools_max_temperature")),
        model_id=fields.model_id,
        image_transports=_recognised(fields.image_transports, set(ImageTransport)),
    )


def _recognised(values: list[str] | None, vocabulary: set[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values or ()) & {str(value) for value in vocabulary}))


def _read_limit(limits: Mapping[str, object], key: str) -> int:
    value = limits.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INTEGER:
        raise ChatDeclarationInvalid(f"'chat_limits.{key}' has to be an integer from 1 to {MAX_INTEGER}.")
    return value


def _read_tools_max_temperature(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise ChatDeclarationInvalid("'chat_limits.tools_max_temperature' has to be a number from 0 up.")
    return float(value)


class PopAnswer(StrictModel):
    """What a pop answers; every member is present, those of a job are null when there is none."""

    id: str | None = None
    ids: list[str] = Field(default_factory=list)
    payload: dict[str, object] = Field(default_factory=dict)
    model: str | None = None
    ttl: int | None = Field(None, description="The job's lease in seconds.")
    skipped: dict[str, int | str] = Field(default_factory=dict)
    messages: list[dict[str, object]] = Field(default_factory=list)
    softprompt: str | None = None
    extra_source_images: list[object] | None = None


class ChatPopAnswer(PopAnswer):
    """A pop's answer that hands out a chat job."""

    chat: bool = True


TEXT_PAYLOAD_DEFAULTS: Mapping[str, object] = {
    "max_length": 80,
    "max_context_length": 2048,
    "min_p": 0.0,
    "smoothing_factor": 0.0,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
}
"""What an idle answer's payload holds: old workers read these keys without looking whether there is a job."""
