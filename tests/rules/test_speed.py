"""How fast a worker is taken to be."""

import pytest

from hordechat.model_reference.facts import ModelFacts
from tests.pricing.models import B7, B13, B70
from workers_app.rules import speed


@pytest.mark.parametrize(
    ("tokens", "seconds", "expected"),
    [(100, 8.0, 12.5), (100, 3.0, 33.3), (5, 0.0, 1.0), (5, -1.0, 1.0), (0, 4.0, 0.0)],
)
def test_a_sample_is_tokens_a_second(tokens: int, seconds: float, expected: float) -> None:
    assert speed.sample_of(tokens, seconds=seconds) == expected


@pytest.mark.spec("SPD-01", "SPD-02", "SPD-03", "SPD-04", "SPD-05", "SPD-09", "SPD-24")
@pytest.mark.parametrize(
    ("measured", "declared", "longest"),
    [
        (None, 4096, 1200),
        (None, 1000, 1000),
        (1.0, 4096, 120),
        (10.0, 4096, 1200),
        (12.55, 4096, 1506),
        (99.0, 4096, 4096),
    ],
)
def test_the_longest_output_fits_the_lease_after_the_preparation(
    measured: float | None, declared: int, longest: int
) -> None:
    assert speed.longest_output(measured, declared=declared) == longest


@pytest.mark.parametrize(
    ("model", "least"), [(B70, 3.0), (B13, 4.0), (B7, 5.0), (None, 5.0)], ids=["70B", "13B", "7B", "unknown"]
)
def test_a_worker_is_slow_by_the_size_of_its_first_model(model: ModelFacts | None, least: float) -> None:
    assert not speed.is_slow(least, first_model=model)
    assert speed.is_slow(least - 0.1, first_model=model)
    assert speed.is_slow(None, first_model=model)
