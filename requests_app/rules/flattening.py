"""The conversation as one string, for estimates and moderation only; no worker ever receives it (FLT-09)."""

from collections.abc import Iterable, Sequence

import orjson

from hordechat.contract.chat import ChatSubmission, Message
from hordechat.contract.chat.submission import TextPart, Tool
from hordechat.contract.limits import SIZING_CHARACTERS_PER_TOKEN

IMAGE_PLACEHOLDER = "[image]"
IMAGE_PROMPT_TOKENS = 512
"""What the reference worker reckons for an image when it judges whether a prompt fits its context."""


def flatten(submission: ChatSubmission, *, messages: Iterable[Message]) -> str:
    """Return the messages, each as `role: text`, and the definitions of the stored tools, joined by newlines.

    `messages` are the submission's as they are by now: as sent, screened or trimmed. Tools count under `tool_choice`
    none too; a response format does not, since the worker makes a grammar of it.
    """
    return "\n".join([*map(flatten_message, messages), *flatten_tools(submission.tools)])


def flatten_message(message: Message) -> str:
    """Return a message as `role: text`, each image as its placeholder, tool calls as compact JSON after the text."""
    text = "\n".join(part.text if isinstance(part, TextPart) else IMAGE_PLACEHOLDER for part in message.parts)
    if not message.tool_calls:
        return f"{message.role}: {text}"
    calls = _compact_json([call.as_json() for call in message.tool_calls])
    return f"{message.role}: {text}\n{calls}" if text else f"{message.role}: {calls}"


def flatten_tools(tools: Sequence[Tool]) -> list[str]:
    """Return the definitions as one line of compact JSON, and no line when there are none."""
    return [_compact_json([tool.document for tool in tools])] if tools else []


def estimate_prompt_tokens(*, characters: int, images: int) -> int:
    """Return the tokens that sizing reckons with for a flattened text, rounded up, and the images in it (FLT-12)."""
    return -(-characters // SIZING_CHARACTERS_PER_TOKEN) + IMAGE_PROMPT_TOKENS * images


def _compact_json(value: object) -> str:
    """Keep the order of keys and what is not ASCII (FLT-27)."""
    return orjson.dumps(value).decode()
