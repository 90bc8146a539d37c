"""The `horde` object of a chat submit, which a front validates with the same model (HOP-33)."""

from typing import Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from hordechat.contract.limits import MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS
from hordechat.contract.refusals import StrictModel, Strings


class ChatHordeOptions(StrictModel):
    """Options OpenAI has no key for."""

    # An unknown key is refused by `parse`, once: the model would report each, and a body holds a million.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    only: Strings | None = Field(None, min_length=1, description="Only these workers serve the request.")
    ignore: Strings | None = Field(None, min_length=1, description="These workers never serve the request.")
    trusted_workers: bool = Field(False, description="Only workers of trusted owners serve the request.")
    validated_backends: bool = Field(False, description="Only workers with a validated backend serve the request.")
    slow_workers: bool = Field(True, description="False keeps slow workers away.")
    max_context_length: int | None = Field(
        None, ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS, description="The context to run under, in tokens."
    )
    context_fit: Literal["grow", "reject", "truncate_oldest"] = Field(
        "truncate_oldest",
        description="What happens to a conversation over the context: refuse it, grow the context up to the largest a "
        "serving worker has, or grow it and then drop the oldest turns.",
    )
    conformance: Literal["strict", "best_effort"] = Field(
        "strict", description="Strict: only workers that give every guarantee the request needs serve it."
    )
    openai_guards: bool = Field(
        False, description="Refuse as OpenAI does a `json_object` format that no message text asks for."
    )
    include_reasoning: bool = Field(True, description="Read by a front; this route does not store it.")
    availability_mode: Literal["wait", "fail_fast"] = Field(
        "wait", description="Read by a front; this route does not store it."
    )
    max_kudos: int | None = Field(None, ge=1, description="Refuse the request when it is estimated to cost more.")
    dry_run: bool = Field(False, description="Answer what the request would cost, and queue nothing.")
    operation_key: UUID | None = Field(
        None, strict=False, description="Names this submission, so that repeating it makes no second request."
    )
