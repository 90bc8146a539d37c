"""What the request routes answer: a submitted request, and its status."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field, RootModel, WithJsonSchema

from hordechat.contract.refusals import StrictModel

Kudos = Annotated[Decimal, WithJsonSchema({"type": "number"})]
"""Exact until it is rendered, and then a number: pydantic would describe a decimal as a string."""


class SubmittedAnswer(StrictModel):
    """What an accepted submit answers."""

    id: str
    kudos: float = Field(description="The most the request is estimated to cost.")
    message: str | None = Field(None, description="A warning: no online worker can serve the request now.")


class ResolvedRequest(StrictModel):
    """What a request would be run with."""

    context_fit: str = Field(description="How its context was sized: `grow` where trimming was allowed too.")


class QuotedAnswer(StrictModel):
    """What a dry run answers: nothing was queued."""

    kudos: float = Field(description="The most the request is estimated to cost.")
    estimated_prompt_tokens: int = Field(description="The estimate of the messages that would be kept.")
    resolved: ResolvedRequest


class UnqueuedAnswer(RootModel[QuotedAnswer | SubmittedAnswer]):
    """What a submit answers that queued nothing: a dry run's quote, or the request its operation key already names."""


class ResolvedTextRequest(StrictModel):
    """What a text request would be run with."""

    prompt: str
    params: dict[str, object]
    models: list[str]
    style: str | None = None
    estimated_prompt_tokens: int
    context_fit: str


class QuotedTextAnswer(StrictModel):
    """What a text dry run answers: nothing was queued."""

    kudos: float = Field(description="The most the request is estimated to cost.")
    resolved: ResolvedTextRequest


class StoredTextRequest(StrictModel):
    """A text request as its client submitted it."""

    prompt: str = Field(description="The text as it was sent, whatever screening made of it for the workers.")
    params: dict[str, object]
    models: list[str]
    workers: list[str]
    worker_blacklist: bool
    trusted_workers: bool
    validated_backends: bool
    slow_workers: bool


class TextGenerationStatus(StrictModel):
    """One finished generation of a text request."""

    worker_id: str
    worker_name: str
    model: str
    state: str
    text: str
    seed: int
    gen_metadata: list[object]


class GenerationStatus(TextGenerationStatus):
    """One finished generation of a chat request."""

    message: dict[str, object] | None
    finish_reason: str | None
    native_finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    charge_basis: str | None
    queue_wait_seconds: float


class RequestStatus(StrictModel):
    """How far a request of either family has come."""

    finished: int
    processing: int
    restarted: int
    waiting: int
    done: bool
    faulted: bool
    wait_time: int
    queue_position: int
    kudos: Kudos
    is_possible: bool
    eligible_workers: int
    eligible_worker_threads: int


class TextStatus(RequestStatus):
    """The full status of a text request."""

    generations: list[TextGenerationStatus]


class ChatStatus(RequestStatus):
    """The full status of a chat request."""

    generations: list[GenerationStatus]
    context_adjustments: list[dict[str, object]] | None
    impossible_reason: dict[str, object] | None
    fault_reason: str | None
    fault_rc: str | None


class Heartbeat(StrictModel):
    """A node's own health."""

    message: str
    version: str


class UserDetails(StrictModel):
    """A user, as the user itself may see it."""

    username: str
    id: int
    kudos: Kudos
    evaluating_kudos: Kudos
    concurrency: int
    account_age: int
    trusted: bool
    flagged: bool
    moderator: bool
    service: bool
    education: bool
    customizer: bool
    deleted: bool
    pseudonymous: bool
    contact: str | None
    worker_count: int
    worker_ids: list[str]
