"""What a worker's owner gets: the reward for being online, and how a reward parts between balance and escrow."""

from dataclasses import dataclass
from decimal import Decimal

from billing_app.rules.amounts import to_kudos
from billing_app.rules.pricing import UNVALIDATED_BACKEND_FACTOR, parameter_multiplier
from hordechat.model_reference.facts import ModelFacts

NOTHING = Decimal(0)

UPTIME_BASE_KUDOS = 25
UPTIME_KUDOS_PER_CONTEXT_UNIT = 15
UPTIME_CONTEXT_UNIT_TOKENS = 1024
MOST_REWARDED_CONTEXT_TOKENS = 262_144
UPTIME_UNKNOWN_MODEL_FACTOR = 0.5
UPTIME_MODEL_MULTIPLIER = 7
"""The size in billions of parameters whose uptime is worth the base itself."""

SMALLEST_UPTIME_MODEL_FACTOR = 0.25


@dataclass(frozen=True, kw_only=True)
class Earnings:
    """A reward parted between an owner's two accounts."""

    balance: Decimal
    escrow: Decimal


def part_reward(reward: Decimal, *, is_trusted: bool, is_anonymous: bool = False) -> Earnings:
    """Part what a generation earns: an owner who is not yet trusted gets half of it, rounded, in escrow."""
    escrow = NOTHING if is_trusted or is_anonymous else to_kudos(reward / 2)
    return Earnings(balance=reward - escrow, escrow=escrow)


def part_uptime_reward(reward: Decimal, *, is_trusted: bool, is_anonymous: bool = False) -> Earnings:
    """Part what being online earns: an owner who is not yet trusted gets all of it in escrow."""
    escrow = NOTHING if is_trusted or is_anonymous else reward
    return Earnings(balance=reward - escrow, escrow=escrow)


def uptime_reward(first_model: ModelFacts | None, *, max_context_length: int, is_backend_validated: bool) -> Decimal:
    """Return what a worker's time online is worth, by the first model it lists and the context it takes."""
    context_units = min(max_context_length, MOST_REWARDED_CONTEXT_TOKENS) / UPTIME_CONTEXT_UNIT_TOKENS
    base = UPTIME_BASE_KUDOS + UPTIME_KUDOS_PER_CONTEXT_UNIT * context_units
    if first_model is None:
        return to_kudos(base * UPTIME_UNKNOWN_MODEL_FACTOR)
    if not is_backend_validated:
        base *= UNVALIDATED_BACKEND_FACTOR
    size = parameter_multiplier(first_model) / UPTIME_MODEL_MULTIPLIER
    return to_kudos(base * max(size, SMALLEST_UPTIME_MODEL_FACTOR))
