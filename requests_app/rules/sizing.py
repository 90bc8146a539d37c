"""The context a conversation runs under: a length lowered to what workers give, a context grown, old turns dropped.

All sizes are estimates in tokens. Each message is rendered once, so that trimming takes time in proportion to the
conversation and not to its square.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from hordechat.contract.chat import Message
from hordechat.contract.chat.submission import Tool
from hordechat.contract.limits import DEFAULT_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS
from requests_app.errors import PromptExceedsContext
from requests_app.rules.flattening import estimate_prompt_tokens, flatten_message, flatten_tools
from requests_app.rules.length_buckets import bucket_of
from requests_app.rules.turns import Turn, list_droppable_turns

ContextFit = Literal["grow", "reject", "truncate_oldest"]
TextContextFit = Literal["ignore", "reject", "grow"]


class AdjustmentReason(StrEnum):
    """What the server changed to serve a request (CTX-06)."""

    WORKER_MAX_LENGTH = "worker_max_length"
    GROW = "grow"
    TRUNCATE_OLDEST = "truncate_oldest"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adjustment:
    """One change: of a length, or of the prompt's estimate when turns were dropped."""

    reason: AdjustmentReason
    before: int
    after: int
    dropped_messages: int | None = None
    """How many messages went with the turns; None when nothing was dropped."""

    def as_json(self) -> dict[str, object]:
        """Return the entry of `context_adjustments`."""
        entry: dict[str, object] = {"from": self.before, "to": self.after, "reason": self.reason.value}
        return entry if self.dropped_messages is None else entry | {"dropped_messages": self.dropped_messages}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sized:
    """A request as it will run."""

    messages: tuple[Message, ...]
    """The messages that are kept, in their order."""
    max_length: int
    max_context_length: int
    prompt_tokens: int
    """The estimate of the kept messages."""
    adjustments: tuple[Adjustment, ...]
    """What was changed, in the order it was done."""

    @property
    def adjustments_as_json(self) -> list[dict[str, object]] | None:
        """The adjustments as they are stored: no list when there are none (CTX-05)."""
        return [adjustment.as_json() for adjustment in self.adjustments] or None

    @property
    def outcome(self) -> str:
        """What the metric says became of the context."""
        reasons = {adjustment.reason for adjustment in self.adjustments}
        if AdjustmentReason.TRUNCATE_OLDEST in reasons:
            return "truncated"
        return "grown" if AdjustmentReason.GROW in reasons else "fits"

    @property
    def lowering_buckets(self) -> tuple[str, str] | None:
        """The metric's groups of the length asked for and of the workers' largest; None when it was not lowered."""
        for adjustment in self.adjustments:
            if adjustment.reason is AdjustmentReason.WORKER_MAX_LENGTH:
                return bucket_of(adjustment.before), bucket_of(adjustment.after)
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Measured:
    """A run of messages and what it adds to the flattened prompt."""

    characters: int
    """Those of every line and the newline after each."""
    images: int

    def __sub__(self, other: "_Measured") -> "_Measured":
        return _Measured(characters=self.characters - other.characters, images=self.images - other.images)

    @property
    def prompt_tokens(self) -> int:
        """The estimate of the run as a whole prompt, in which no newline follows the last line."""
        return estimate_prompt_tokens(characters=self.characters - 1, images=self.images)


def size(
    *,
    messages: tuple[Message, ...],
    tools: Sequence[Tool],
    max_length: int,
    max_context_length: int | None,
    context_fit: ContextFit,
    largest_length: int | None,
    largest_context: int | None,
) -> Sized:
    """Return the lengths and messages a request runs with.

    `largest_length` and `largest_context` are the largest the online chat workers of the models declare, None when no
    such worker is online: then nothing is lowered and nothing grows.

    Raises:
        PromptExceedsContext: the conversation does not fit as it may be changed.
    """
    adjustments = []
    if largest_length is not None and max_length > largest_length:
        adjustments.append(
            Adjustment(reason=AdjustmentReason.WORKER_MAX_LENGTH, before=max_length, after=largest_length)
        )
        max_length = largest_length
    lines = [_measure(flatten_message(message), images=message.image_count) for message in messages]
    whole = _total([*lines, *(_measure(line, images=0) for line in flatten_tools(tools))])
    requested = DEFAULT_CONTEXT_TOKENS if max_context_length is None else max_context_length
    context = _grow(
        need=whole.prompt_tokens + max_length,
        requested=requested,
        bound=requested if context_fit == "reject" or largest_context is None else largest_context,
    )
    if context > requested:
        adjustments.append(Adjustment(reason=AdjustmentReason.GROW, before=requested, after=context))
    dropped: frozenset[int] = frozenset()
    rest = whole
    if context_fit == "truncate_oldest":
        dropped, rest = _drop_oldest(list_droppable_turns(messages), lines, whole=whole, room=context - max_length)
    if rest.prompt_tokens + max_length > context:
        raise PromptExceedsContext(prompt_tokens=whole.prompt_tokens, max_length=max_length, context=context)
    if dropped:
        adjustments.append(
            Adjustment(
                reason=AdjustmentReason.TRUNCATE_OLDEST,
                before=whole.prompt_tokens,
                after=rest.prompt_tokens,
                dropped_messages=len(dropped),
            )
        )
    return Sized(
        messages=tuple(message for place, message in enumerate(messages) if place not in dropped),
        max_length=max_length,
        max_context_length=context,
        prompt_tokens=rest.prompt_tokens,
        adjustments=tuple(adjustments),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SizedText:
    """The context a prompt will run under."""

    max_context_length: int
    prompt_tokens: int
    outcome: Literal["fits", "sent_overlong", "grown"]
    """What the metric says became of the context."""


def size_text(
    *,
    prompt_characters: int,
    max_length: int,
    max_context_length: int,
    context_fit: TextContextFit,
    largest_context: int | None,
) -> SizedText:
    """Return the context of a text request, whose prompt is never trimmed: a worker cuts what is over (text-path 14.1).

    `largest_context` is the largest an online text worker of the models declares, None when no such worker is online:
    then nothing grows.

    Raises:
        PromptExceedsContext: the prompt does not fit, and the mode is not to ignore that.
    """
    prompt_tokens = estimate_prompt_tokens(characters=prompt_characters, images=0)
    need = prompt_tokens + max_length
    context = max_context_length
    if context_fit == "grow":
        context = _grow(need=need, requested=context, bound=context if largest_context is None else largest_context)
    if need > context and context_fit != "ignore":
        raise PromptExceedsContext(prompt_tokens=prompt_tokens, max_length=max_length, context=context)
    return SizedText(
        max_context_length=context,
        prompt_tokens=prompt_tokens,
        outcome="sent_overlong" if need > context else "grown" if context > max_context_length else "fits",
    )


def _grow(*, need: int, requested: int, bound: int) -> int:
    """Return the context for a need: the smallest power of two that holds it, within the bound (CTX-42).

    A need beyond the bound gets the bound, or what was requested where that is more: it is what is there to fit.
    """
    if need <= requested:
        return requested
    # A worker may declare more than a client may ask for; no context grows beyond that.
    most = max(min(bound, MAX_CONTEXT_TOKENS), requested)
    return min(1 << (need - 1).bit_length(), most)


def _drop_oldest(
    turns: Iterable[Turn], lines: Sequence[_Measured], *, whole: _Measured, room: int
) -> tuple[frozenset[int], _Measured]:
    """Return the places of the messages to drop, turn by turn until the rest fits, and the rest; it may never fit."""
    dropped: set[int] = set()
    rest = whole
    for turn in turns:
        if rest.prompt_tokens <= room:
            break
        dropped.update(turn)
        rest -= _total([lines[place] for place in turn])
    return frozenset(dropped), rest


def _measure(line: str, *, images: int) -> _Measured:
    return _Measured(characters=len(line) + 1, images=images)


def _total(lines: Sequence[_Measured]) -> _Measured:
    return _Measured(characters=sum(line.characters for line in lines), images=sum(line.images for line in lines))
