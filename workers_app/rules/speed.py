"""How fast a worker is, and how long an output it finishes within a lease."""

import math

from hordechat.contract.limits import (
    TEXT_JOB_LEASE_SECONDS,
    TEXT_JOB_PREPARATION_SECONDS,
    UNMEASURED_TOKENS_PER_SECOND,
)
from hordechat.model_reference.facts import ModelFacts

STORED_BASELINE = 1.0
"""What a worker without samples is shown with, and judged slow by; the lease reckons with another speed (SPD-03)."""

SPEED_SAMPLES = 20
"""The mean is over as many of the latest replies."""

LEAST_BY_PARAMETERS = ((20_000_000_000, 3.0), (13_000_000_000, 4.0))
"""From how many parameters of its first model on a worker is not slow at how many tokens a second."""
LEAST_SPEED = 5.0
"""The same for smaller models, and those nobody knows the size of."""


MAX_SUSPICIONS = 5
"""A worker with as many is paused, unless its owner is trusted (text-path 5.7)."""

FASTEST = 150.0
"""Tokens a second nobody reaches, whatever the model."""
FASTEST_BY_PARAMETERS = ((70_000_000_000, 30.0), (14_000_000_000, 100.0))
"""The same for large models, of owners who are not trusted yet."""
MIXTURE = "8x"
"""In a model's name: of its experts few work on a token, so that it is up to three times as fast."""
MIXTURE_FACTOR = 3


def is_suspicious(sample: float, *, model: ModelFacts | None, model_name: str, is_owner_trusted: bool) -> bool:
    """Return whether a reply came faster than the model that is said to have made it can generate."""
    if sample > FASTEST:
        return True
    if is_owner_trusted or model is None:
        return False
    fastest = next((limit for size, limit in FASTEST_BY_PARAMETERS if model.parameters >= size), FASTEST)
    return sample > fastest * (MIXTURE_FACTOR if MIXTURE in model_name else 1)


def sample_of(tokens: int, *, seconds: float) -> float:
    """Return the tokens a second of one reply, to one decimal; 1 when no time passed."""
    return round(tokens / seconds, 1) if seconds > 0 else 1.0


def lease_capacity(speed: float | None) -> float:
    """Return the longest output, in tokens, a worker finishes within the base lease after its preparation (SPD-01).

    A worker without a measured speed is taken to run at 10 tokens a second (SPD-03, SPD-24).
    """
    assumed = UNMEASURED_TOKENS_PER_SECOND if speed is None else speed
    return assumed * (TEXT_JOB_LEASE_SECONDS - TEXT_JOB_PREPARATION_SECONDS)


def longest_output(speed: float | None, *, declared: int) -> int:
    """Return the longest chat output a worker is offered: what it declares, within its capacity (SPD-06)."""
    return min(declared, math.floor(lease_capacity(speed)))


def is_slow(speed: float | None, *, first_model: ModelFacts | None) -> bool:
    """Return whether a worker is one a request may keep away, by the first model of its pop (text-path 6.1)."""
    parameters = 0 if first_model is None else first_model.parameters
    least = next((speed for size, speed in LEAST_BY_PARAMETERS if parameters >= size), LEAST_SPEED)
    return (STORED_BASELINE if speed is None else speed) < least
