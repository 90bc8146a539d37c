"""What a worker has to declare to serve a request; derived once, when the request is created (FTR-25)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hordechat.contract.chat import ChatSubmission, Message
from hordechat.contract.vocabulary import Capability, Conformance, Role
from requests_app.rules.payload import DEFAULT_TEMPERATURE
from workers_app.rules.capabilities import mask_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a request asks of its worker."""

    capabilities: tuple[str, ...]
    """Features and guarantees, sorted as they are stored."""
    feature_mask: int
    """The capabilities as bits, for the queue."""
    tools_temperature: float | None
    """The temperature the worker has to apply while tools are present; None when it receives none."""


def needs_of(submission: ChatSubmission, *, messages: Sequence[Message]) -> Needs:
    """Return what a worker has to declare; `messages` are those it will receive, which trimming may have thinned."""
    capabilities = {*_features(submission, messages)}
    # A feature is an ability, and needed under either mode; only guarantees can be waived (FTR-24, GUA-13).
    if Conformance(submission.horde.conformance) is Conformance.STRICT:
        capabilities.update(_guarantees(submission))
    return Needs(
        capabilities=tuple(sorted(capability.value for capability in capabilities)),
        feature_mask=mask_of(capabilities),
        tools_temperature=_tools_temperature(submission),
    )


def _features(submission: ChatSubmission, messages: Sequence[Message]) -> Iterator[Capability]:
    sampling = submission.sampling
    # Sent at all is enough: a backend without the ability would ignore a seed of 0, or reason despite `none`.
    if sampling.seed is not None:
        yield Capability.SEED
    if sampling.reasoning_effort is not None:
        yield Capability.REASONING_EFFORT
    if sampling.presence_penalty:
        yield Capability.PRESENCE_PENALTY
    if sampling.frequency_penalty:
        yield Capability.FREQUENCY_PENALTY
    if any(message.image_count for message in messages):
        yield Capability.VISION
    if submission.forwards_tools or any(message.tool_calls or message.role == Role.TOOL for message in messages):
        yield Capability.TOOLS
    if submission.response_format is not None:
        yield Capability(submission.response_format.type)
        if submission.forwards_tools:
            yield Capability.TOOLS_WITH_RESPONSE_FORMAT


def _guarantees(submission: ChatSubmission) -> Iterator[Capability]:
    # The single tool call is not among them: the server cuts a reply's calls itself (GUA-06).
    yield Capability.PROMPT_OVERFLOW_REFUSED
    choice = submission.tool_choice
    if submission.forwards_tools and choice is not None and choice.mode in {"required", "function"}:
        yield Capability.TOOL_CHOICE_ENFORCED
    if submission.response_format is not None and submission.response_format.is_strict:
        yield Capability.STRUCTURED_OUTPUT_ENFORCED


def _tools_temperature(submission: ChatSubmission) -> float | None:
    if not submission.forwards_tools:
        return None
    temperature = submission.sampling.temperature
    return DEFAULT_TEMPERATURE if temperature is None else float(temperature)
