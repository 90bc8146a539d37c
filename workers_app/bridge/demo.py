"""A backend without a model: the same conversation always gets the same, plainly labelled text."""

from collections.abc import Iterable

from hordechat.contract.vocabulary import Capability, FinishReason
from workers_app.bridge import estimate
from workers_app.bridge.values import (
    FaultReason,
    GenerationFailed,
    Payload,
    Reply,
)

CHARACTERS_PER_TOKEN = 4
LABEL = "[demo reply, no model behind it]"


class DemoBackend:
    """Says back what it was told, within the length and stop sequences asked for."""

    # The same conversation gives the same reply, so a seed is honoured without being read.
    features = frozenset({Capability.PROMPT_OVERFLOW_REFUSED, Capability.SEED})

    async def find_problem(self) -> str | None:
        """Return None: nothing can be missing."""
        return None

    async def generate(self, payload: Payload) -> Reply:
        """Answer with the last thing the user said.

        Raises:
            GenerationFailed: the estimated prompt and the reply do not fit the context.
        """
        if estimate.plain_tokens(payload) + payload.max_length > payload.max_context_length:
            raise GenerationFailed(FaultReason.PROMPT_OVERFLOW, "the estimated prompt does not fit the context")
        return compose(payload)

    async def close(self) -> None:
        """Do nothing: no connection is held."""


def compose(payload: Payload) -> Reply:
    """Return the reply to a conversation: label, what the user said last, cut at a stop sequence or at the length."""
    said = [" ".join(message.texts()) for message in payload.messages if message.role == "user"]
    text = f"{LABEL} You said: {said[-1]}" if said else f"{LABEL} You said nothing."
    stop_at = _find_stop(text, payload.stop_sequence or ())
    length = payload.max_length * CHARACTERS_PER_TOKEN
    if stop_at is not None and stop_at <= length:
        return Reply(text[:stop_at], FinishReason.STOP)
    return Reply(text[:length], FinishReason.LENGTH if len(text) > length else FinishReason.STOP)


def _find_stop(text: str, stops: Iterable[str]) -> int | None:
    places = [text.find(stop) for stop in stops if stop]
    return min((place for place in places if place >= 0), default=None)
