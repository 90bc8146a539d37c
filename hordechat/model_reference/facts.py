"""What is known of a text model, as the rest of the project reads it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFacts:
    """A model of the reference. A model outside it has no facts: `None` stands for it."""

    parameters: int
    is_nsfw: bool = False
