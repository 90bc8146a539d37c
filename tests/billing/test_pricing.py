"""The text kudos formula gives the documented numbers."""

from decimal import Decimal

import pytest

from billing_app.rules import pricing


@pytest.mark.spec("PRC-10", "PRC-11", "PRC-12", "PRC-26")
@pytest.mark.parametrize(
    ("characters", "max_length", "tokens"),
    [
        (None, 512, 0),
        (0, 512, 20),
        (1, 512, 20),
        (80, 512, 20),
        (81, 512, 21),
        (84, 512, 21),
        (85, 512, 22),
        (2000, 512, 500),
        (2048, 512, 512),
        (2049, 512, 512),
        (8000, 512, 512),
        (0, 16, 16),
        (65, 16, 16),
        (64, 16, 16),
    ],
)
def test_estimates_tokens_by_characters_with_the_cap_after_the_floor(
    characters: int | None, max_length: int, tokens: int
) -> None:
    assert pricing.token_estimate(characters, max_length=max_length) == tokens


@pytest.mark.parametrize(
    ("tokens", "multiplier"),
    [
        (0, 1.2),
        (256, 1.4066),
        (512, 1.6545),
        (1024, 2.2),
        (2048, 3.4),
        (4096, 6.04),
        (8192, 11.848),
        (16384, 24.6256),
        (19599, 29.9213),
        (20000, 30),
        (10**12, 30),
    ],
)
def test_makes_tokens_dearer_with_the_context(tokens: int, multiplier: float) -> None:
    assert pricing.context_multiplier(tokens) == pytest.approx(multiplier, abs=0.00005)


@pytest.mark.parametrize(
    ("reply_tokens", "prompt_tokens", "kudos"),
    [
        # t x C(p) x 0.027
        (20, 1024, "1.19"),  # 1.188
        (500, 512, "22.34"),  # 22.3364
        (512, 2048, "47.00"),  # 47.0016
        (0, 1024, "0.00"),
        (16, 20, "0.52"),  # 16 x 1.2114 x 0.027
    ],
)
def test_settles_a_model_outside_the_reference_for_a_trusted_owner(
    reply_tokens: int, prompt_tokens: int, kudos: str
) -> None:
    settled = pricing.settle_unknown_model_trusted(reply_tokens=reply_tokens, prompt_tokens=prompt_tokens)

    assert str(settled) == kudos


@pytest.mark.parametrize(
    ("max_length", "max_context_length", "n", "quote", "total"),
    [
        (80, 2048, 1, "7.34", "9.34"),  # 80 x 0.027 x 3.4 = 7.344
        (80, 2048, 3, "7.34", "26.02"),
        (512, 8192, 1, "163.79", "165.79"),  # 512 x 0.027 x 11.848 = 163.786752
        (512, 1024, 2, "30.41", "63.82"),  # 30.4128
    ],
)
def test_quotes_a_model_outside_the_reference(
    max_length: int, max_context_length: int, n: int, quote: str, total: str
) -> None:
    each = pricing.quote_unknown(max_length=max_length, max_context_length=max_context_length)

    assert str(each) == quote
    assert pricing.total_quote(each, n=n) == Decimal(total)
