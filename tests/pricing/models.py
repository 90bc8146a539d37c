"""Models by size, as the documentation's examples name them."""

from hordechat.model_reference.facts import ModelFacts


def billions(parameters: float) -> ModelFacts:
    return ModelFacts(parameters=round(parameters * 1_000_000_000))


B1, B7, B8, B13, B70 = map(billions, (1, 7, 8, 13, 70))
UNKNOWN = None
