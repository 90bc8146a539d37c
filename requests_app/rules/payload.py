"""What a worker receives of a request."""

from collections.abc import Mapping

from hordechat.contract.pop import TEXT_PAYLOAD_DEFAULTS
from requests_app.rules.narrowing import narrow_extras

DEFAULT_TEMPERATURE = 1.0

SAMPLING_DEFAULTS: Mapping[str, object] = {
    "temperature": DEFAULT_TEMPERATURE,
    "top_p": 1.0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "rep_pen": 1.0,
    "top_k": 0,
    "min_p": 0,
}
"""Always sent, so that no default of a worker takes effect on a chat job (POP-30)."""


def chat_payload(
    *,
    messages: object,
    params: Mapping[str, object],
    extras: Mapping[str, object] | None,
    max_length: int,
    max_context_length: int,
) -> dict[str, object]:
    """Return a chat job's payload; `params` and `extras` are as stored and hold only what the client sent."""
    return {
        "messages": messages,
        **SAMPLING_DEFAULTS,
        **params,
        **narrow_extras(extras or {}),
        "max_length": max_length,
        "max_context_length": max_context_length,
        "n": 1,
    }


def text_payload(
    *, prompt: str, params: Mapping[str, object], max_length: int, max_context_length: int
) -> dict[str, object]:
    """Return a text job's payload: what the client sent, over the few defaults old workers count on."""
    return {
        **TEXT_PAYLOAD_DEFAULTS,
        **params,
        "max_length": max_length,
        "max_context_length": max_context_length,
        "prompt": prompt,
        "n": 1,
    }
