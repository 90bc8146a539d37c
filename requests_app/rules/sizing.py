"""Whether a conversation and the reply asked for fit a context."""


def fits(*, prompt_tokens: int, max_length: int, context: int) -> bool:
    """Return whether the estimate plus the longest reply is at most the context (CTX-41)."""
    return prompt_tokens + max_length <= context
