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
    trusted_workers: bool = False
    validated_backends: bool = False
    slow_workers: bool = True
    max_context_length: int | None = Field(None, ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS)
    context_fit: Literal["grow", "reject", "truncate_oldest"] = "truncate_oldest"
    conformance: Literal["strict", "best_effort"] = "strict"
    openai_guards: bool = False
    include_reasoning: bool = True
    availability_mode: Literal["wait", "fail_fast"] = "wait"
    max_kudos: int | None = Field(None, ge=1)
    dry_run: bool = False
    operation_key: UUID | None = Field(None, strict=False)
