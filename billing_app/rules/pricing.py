"""The text kudos formula, for chat and text alike. Factors are floats; each amount is rounded once, half to even."""

import math
from decimal import ROUND_HALF_EVEN, Decimal

from billing_app.rules.accounts import HUNDREDTH

HORDE_TAX = Decimal(1)
"""What every request pays when it is activated."""

BURN = Decimal(1)
"""What every generation costs its requester above what its worker earns."""

CHARACTERS_PER_TOKEN = 4
FEWEST_TOKENS = 20
"""A reply is charged at least this much, however short, unless less was asked for."""

SMALLEST_CONTEXT_MULTIPLIER = 0.1
LARGEST_CONTEXT_MULTIPLIER = 30.0
CONTEXT_UNIT_TOKENS = 1024
"""The context length at which the multiplier's power is 1."""

UNKNOWN_MODEL_KUDOS_PER_TOKEN = 0.027
"""What a token of a model outside the reference is worth: what a quote gives one of a 2.7 billion parameter model."""


def token_estimate(characters: int | None, *, max_length: int) -> int:
    """Return how many tokens a text is charged as; no text at all is none.

    The cap comes after the floor: a request for 16 tokens is never charged 20.
    """
    if characters is None:
        return 0
    return min(max(FEWEST_TOKENS, -(-characters // CHARACTERS_PER_TOKEN)), max_length)


def context_multiplier(tokens: int) -> float:
    """Return how much dearer a token becomes behind a context of this many tokens."""
    if tokens <= 0:
        return 1.2  # the limit of the formula, whose logarithm has no value here
    multiplier = 1.2 + math.pow(2.2, math.log2(tokens / CONTEXT_UNIT_TOKENS))
    return min(max(multiplier, SMALLEST_CONTEXT_MULTIPLIER), LARGEST_CONTEXT_MULTIPLIER)


def settle_unknown_model_trusted(*, reply_tokens: int, prompt_tokens: int) -> Decimal:
    """Return what a generation of a model outside the reference earns a trusted owner."""
    return _kudos(reply_tokens * context_multiplier(prompt_tokens) * UNKNOWN_MODEL_KUDOS_PER_TOKEN)


def quote_unknown(*, max_length: int, max_context_length: int) -> Decimal:
    """Return the most one generation of a model outside the reference is expected to cost, without burn and tax."""
    return _kudos(max_length * UNKNOWN_MODEL_KUDOS_PER_TOKEN * context_multiplier(max_context_length))


def total_quote(quote: Decimal, *, n: int) -> Decimal:
    """Return what a client is told a request of `n` generations costs: each with its burn, and the tax once."""
    return (quote + BURN) * n + HORDE_TAX


def _kudos(amount: float) -> Decimal:
    return Decimal(amount).quantize(HUNDREDTH, rounding=ROUND_HALF_EVEN)
