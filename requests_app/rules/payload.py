"""What a worker receives of a chat request."""

from collections.abc import Mapping

SAMPLING_DEFAULTS: Mapping[str, object] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "rep_pen": 1.0,
    "top_k": 0,
    "min_p": 0,
}
"""Always sent, so that no default of a worker takes effect on a chat job (POP-30)."""


def chat_payload(
    *, messages: object, params: Mapping[str, object], max_length: int, max_context_length: int
) -> dict[str, object]:
    """Return a chat job's payload; `params` holds only what the client sent."""
    return {
        "messages": messages,
        **SAMPLING_DEFAULTS,
        **params,
        "max_length": max_length,
        "max_context_length": max_context_length,
        "n": 1,
    }
