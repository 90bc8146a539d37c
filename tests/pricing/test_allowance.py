"""How long an output is free, by the wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_app.rules.allowance import AllowanceCurve


@pytest.mark.parametrize(
    ("wait_seconds", "tokens"),
    [
        (0, 4096),
        (60, 4096),
        (60.01, 4096),  # 4095.85
        (61, 4081),  # 4096 - 3584 / 240 = 4081.07
        (120, 3200),
        (180, 2304),
        (240, 1408),
        (299, 527),
        (300, 512),
        (301, 512),
        (float("inf"), 512),
        (None, 512),  # nobody could serve the request
    ],
)
def test_falls_in_a_line_from_the_ceiling_to_the_floor(wait_seconds: float | None, tokens: int) -> None:
    assert AllowanceCurve().tokens_at(wait_seconds) == tokens


@pytest.mark.parametrize(("wait_seconds", "tokens"), [(1, 2), (3, 2), (5, 0)])
def test_rounds_half_to_even(wait_seconds: float, tokens: int) -> None:
    curve = AllowanceCurve(ceiling_tokens=3, floor_tokens=0, full_wait_seconds=0, floor_wait_seconds=6)

    assert curve.tokens_at(wait_seconds) == tokens  # 2.5, 1.5, 0.5


def test_a_flat_curve_is_flat() -> None:
    curve = AllowanceCurve(ceiling_tokens=512, floor_tokens=512)

    assert {curve.tokens_at(wait) for wait in (0, 60, 100.5, 299, 300, None)} == {512}


@pytest.mark.parametrize(
    "numbers",
    [
        {"floor_tokens": 4097},
        {"floor_wait_seconds": 60},
        {"floor_wait_seconds": 59},
    ],
)
def test_refuses_a_curve_that_rises_or_has_no_slope(numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="The "):
        AllowanceCurve(**numbers)


@given(wait=st.floats(0, 1000), longer=st.floats(0, 1000))
def test_a_longer_wait_never_frees_more(wait: float, longer: float) -> None:
    curve = AllowanceCurve()

    assert 512 <= curve.tokens_at(wait + longer) <= curve.tokens_at(wait) <= 4096
