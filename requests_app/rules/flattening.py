"""The conversation as one string, for estimates only; no worker ever receives it (FLT-09)."""

from collections.abc import Iterable

from hordechat.contract.chat import Message
from hordechat.contract.limits import SIZING_CHARACTERS_PER_TOKEN


def flatten(messages: Iterable[Message]) -> str:
    """Return each message as `role: text`, parts and messages joined by newlines (FLT-02, FLT-03)."""
    return "\n".join(f"{message.role}: " + "\n".join(message.texts) for message in messages)


def estimate_prompt_tokens(flattened: str) -> int:
    """Return the tokens that sizing reckons with, rounded up (FLT-23)."""
    return -(-len(flattened) // SIZING_CHARACTERS_PER_TOKEN)
