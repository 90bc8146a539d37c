"""Closed vocabularies of the wire, stored as their values."""

from enum import StrEnum


class Role(StrEnum):
    """Who speaks in a message; `developer` is stored and sent to workers as `system` (REQ-28)."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Capability(StrEnum):
    """What a worker declares in `chat_features`: the features of a backend, and the guarantees it gives.

    Values are added, never changed. A value's place here is its bit in the queue's feature mask, so new ones go last.
    """

    SEED = "seed"
    REASONING_EFFORT = "reasoning_effort"
    PRESENCE_PENALTY = "presence_penalty"
    FREQUENCY_PENALTY = "frequency_penalty"
    VISION = "vision"
    TOOLS = "tools"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    TOOLS_WITH_RESPONSE_FORMAT = "tools_with_response_format"
    TOOL_CHOICE_ENFORCED = "tool_choice_enforced"
    SINGLE_TOOL_CALL_ENFORCED = "single_tool_call_enforced"
    STRUCTURED_OUTPUT_ENFORCED = "structured_output_enforced"
    PROMPT_OVERFLOW_REFUSED = "prompt_overflow_refused"


class ImageTransport(StrEnum):
    """How a worker takes images and offloaded messages."""

    URL = "url"
    BASE64 = "base64"
    MESSAGES_URL = "messages_url"


class Conformance(StrEnum):
    """Whether a request insists on the guarantees it needs."""

    STRICT = "strict"
    BEST_EFFORT = "best_effort"


class ReasoningEffort(StrEnum):
    """How much a model is asked to reason."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"


class FinishReason(StrEnum):
    """Why a worker stopped generating."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALLS = "tool_calls"


class FaultReason(StrEnum):
    """Why a worker gives a chat job back (WFR-01)."""

    PROMPT_OVERFLOW = "prompt_overflow"
    UNBUILDABLE_GRAMMAR = "unbuildable_grammar"
    TOOL_VIOLATION = "tool_violation"
    REPLY_REFUSED = "reply_refused"
    GENERATION_ERROR = "generation_error"


class GenerationState(StrEnum):
    """The state a stored reply is shown with."""

    OK = "ok"
    CENSORED = "censored"
    CSAM = "csam"


FAULTED_STATE = "faulted"
"""The `state` of a submit that gives the job back."""


class ChargeBasis(StrEnum):
    """What a generation was charged by."""

    OUTPUT_ESTIMATE = "output_estimate"


class CompletionEvent(StrEnum):
    """What a completion signal says happened to a request."""

    GENERATION = "generation"
    DONE = "done"
    CANCELLED = "cancelled"
    FAULTED = "faulted"
