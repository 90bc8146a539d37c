"""What a request costs: the text kudos formula, for chat and text alike.

Factors are floats; each documented formula is rounded once, half to even. A model of the reference comes in as its
facts, a model outside it as `None`. What a worker's owner gets out of it is in `earnings`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from billing_app.rules.amounts import to_kudos, to_whole_kudos
from hordechat.contract.vocabulary import ChargeBasis
from hordechat.model_reference.facts import ModelFacts

Models = Sequence[ModelFacts | None]
"""The models a request lists, in its order; empty when any model will do."""

HORDE_TAX = Decimal(1)
"""What every request pays when it is activated."""

IMAGE_TAX = Decimal(5)
"""What each image of a request adds to its tax."""

BURN = Decimal(1)
"""What every generation costs its requester above what its worker earns."""

CHARGE_BASIS = ChargeBasis.OUTPUT_ESTIMATE
"""What a generation is charged by: the tokens its reply's characters make, never those a worker reports."""

CHARACTERS_PER_TOKEN = 4
FEWEST_TOKENS = 20
"""A reply is charged at least this much, however short, unless less was asked for."""

SMALLEST_CONTEXT_MULTIPLIER = 0.1
LARGEST_CONTEXT_MULTIPLIER = 30.0
CONTEXT_UNIT_TOKENS = 1024
"""The context length at which the multiplier's power is 1."""

PARAMETERS_PER_MULTIPLIER = 1_000_000_000
UNKNOWN_MODEL_MULTIPLIER = 1.0
LARGEST_MODEL_WITHOUT_BONUS = 13.0
"""The multiplier up to which a model's size counts as it is; above, it counts a little more."""

ANY_MODEL_MULTIPLIER = 13
"""What a request that takes any model is quoted as."""

ANY_MODEL_UPFRONT_KUDOS = Decimal(20)
"""What each generation of a request that takes any model has to be covered by."""

UNKNOWN_MODEL_KUDOS_PER_TOKEN = 0.027
"""What a token of a model outside the reference is worth: what a quote gives one of a 2.7 billion parameter model."""

QUOTE_DIVISOR = 100
SETTLEMENT_DIVISOR = 125
UPFRONT_DIVISOR = 21

UNVALIDATED_BACKEND_FACTOR = 0.3
MATCHED_TARGETING_FACTOR = 0.1
"""What is left of a price where targeting has to match and the request names its workers."""


def token_estimate(characters: int | None, *, max_length: int) -> int:
    """Return how many tokens a text is charged as; no text at all is none.

    The cap comes after the floor: a request for 16 tokens is never charged 20.
    """
    if characters is None:
        return 0
    return min(max(FEWEST_TOKENS, -(-characters // CHARACTERS_PER_TOKEN)), max_length)


def parameter_multiplier(model: ModelFacts | None) -> float:
    """Return a model's size in billions of parameters; a model outside the reference counts as one billion."""
    return UNKNOWN_MODEL_MULTIPLIER if model is None else model.parameters / PARAMETERS_PER_MULTIPLIER


def parameter_bonus(multiplier: float) -> float:
    """Return how much dearer a large model's parameters are than a small one's."""
    return math.pow(max(multiplier, LARGEST_MODEL_WITHOUT_BONUS) / LARGEST_MODEL_WITHOUT_BONUS, 0.20)


def context_multiplier(tokens: int) -> float:
    """Return how much dearer a token becomes behind a context of this many tokens."""
    if tokens <= 0:
        return 1.2  # the limit of the formula, whose logarithm has no value here
    multiplier = 1.2 + math.pow(2.2, math.log2(tokens / CONTEXT_UNIT_TOKENS))
    return min(max(multiplier, SMALLEST_CONTEXT_MULTIPLIER), LARGEST_CONTEXT_MULTIPLIER)


def quote(models: Models, *, max_length: int, max_context_length: int, is_matched_targeting: bool = False) -> Decimal:
    """Return the most one generation is expected to cost, without burn and tax; the first listed model decides."""
    context = context_multiplier(max_context_length)
    targeting = MATCHED_TARGETING_FACTOR if is_matched_targeting else 1
    if not models:
        return to_kudos(max_length * ANY_MODEL_MULTIPLIER * context / QUOTE_DIVISOR * targeting)
    first = models[0]
    if first is None:
        return to_kudos(max_length * UNKNOWN_MODEL_KUDOS_PER_TOKEN * context * targeting)
    multiplier = parameter_multiplier(first)
    return to_kudos(max_length * parameter_bonus(multiplier) * multiplier * context / QUOTE_DIVISOR * targeting)


def request_quote(each: Decimal, *, n: int, image_count: int = 0) -> Decimal:
    """Return what a client is told a request of `n` generations costs: each with its burn, and the tax once."""
    return to_whole_kudos((each + BURN) * n + tax(image_count=image_count))


def tax(*, image_count: int = 0) -> Decimal:
    """Return what a request pays when it is activated."""
    return HORDE_TAX + IMAGE_TAX * image_count


def upfront_amount(models: Models, *, max_length: int, n: int) -> Decimal:
    """Return what a requester has to own before a request above the free output allowance is queued.

    The largest listed model decides, so that a cheap model beside a dear one lowers nothing.
    """
    if not models:
        return ANY_MODEL_UPFRONT_KUDOS * n
    largest = max(map(parameter_multiplier, models))
    return to_kudos(max_length * largest / UPFRONT_DIVISOR) * n


@dataclass(frozen=True, kw_only=True)
class PricedGeneration:
    """What a settlement is decided by."""

    model: ModelFacts | None
    """The model that served it, whatever else the request lists."""
    reply_characters: int | None
    prompt_characters: int
    max_length: int
    is_backend_validated: bool
    is_owner_trusted: bool
    is_censored: bool = False
    is_matched_targeting: bool = False


@dataclass(frozen=True, kw_only=True)
class Settlement:
    """What a finished generation moves."""

    reward: Decimal
    """What its worker's owner earns, in full even when the reply is censored."""
    charge: Decimal
    """What its requester pays, the burn included; of a censored reply the burn alone."""
    basis: ChargeBasis


def settle(generation: PricedGeneration) -> Settlement:
    """Return what a generation is worth to its worker's owner and costs its requester."""
    reward = to_kudos(_worth(generation) * (MATCHED_TARGETING_FACTOR if generation.is_matched_targeting else 1))
    charge = BURN if generation.is_censored else reward + BURN
    return Settlement(reward=reward, charge=charge, basis=CHARGE_BASIS)


def _worth(generation: PricedGeneration) -> float:
    reply_tokens = token_estimate(generation.reply_characters, max_length=generation.max_length)
    # The prompt counts up to `max_length` and not up to the context's length: a settlement is far below its quote.
    context = context_multiplier(token_estimate(generation.prompt_characters, max_length=generation.max_length))
    if generation.model is None:
        # A model nobody listed and an owner nobody knows: the reply's length is not taken at their word.
        return reply_tokens * context * UNKNOWN_MODEL_KUDOS_PER_TOKEN if generation.is_owner_trusted else context
    multiplier = parameter_multiplier(generation.model)
    backend = 1 if generation.is_backend_validated else UNVALIDATED_BACKEND_FACTOR
    return reply_tokens * parameter_bonus(multiplier) * multiplier / SETTLEMENT_DIVISOR * backend * context
