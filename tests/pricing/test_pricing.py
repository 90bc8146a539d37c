"""What a request costs: each table is a formula of the documentation with its worked numbers."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_app.rules import pricing
from billing_app.rules.pricing import PricedGeneration
from hordechat.contract.vocabulary import ChargeBasis
from hordechat.model_reference.facts import ModelFacts
from tests.pricing.models import B1, B8, B13, B70, UNKNOWN, billions
from tests.spec.rows import PROJECT

CODE = ("billing_app", "hordechat", "requests_app", "workers_app")


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
        (64, 16, 16),
        (65, 16, 16),
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
        (19700, 30),
        (10**12, 30),
    ],
)
def test_makes_tokens_dearer_with_the_context(tokens: int, multiplier: float) -> None:
    assert pricing.context_multiplier(tokens) == pytest.approx(multiplier, abs=0.00005)


@pytest.mark.parametrize(
    ("model", "multiplier", "bonus"),
    [(UNKNOWN, 1, 1), (B1, 1, 1), (B8, 8, 1), (B13, 13, 1), (B70, 70, 1.4003), (billions(0.5), 0.5, 1)],
)
def test_makes_parameters_dearer_above_thirteen_billion(
    model: ModelFacts | None, multiplier: float, bonus: float
) -> None:
    assert pricing.parameter_multiplier(model) == multiplier
    assert pricing.parameter_bonus(multiplier) == pytest.approx(bonus, abs=0.00005)


@pytest.mark.parametrize(
    ("models", "max_length", "max_context_length", "n", "quote", "answer"),
    [
        # known: L x B x M x C(X) / 100; the answer adds a burn for each and the tax, and is rounded
        ([B8], 80, 2048, 1, "21.76", 24),
        ([B8], 512, 8192, 1, "485.29", 487),
        ([B70], 512, 8192, 1, "5946.26", 5948),
        ([B8], 80, 2048, 3, "21.76", 69),  # 22.76 x 3 + 1 = 69.28
        # no models: L x 13 x C(X) / 100
        ([], 80, 2048, 1, "35.36", 37),  # 80 x 13 x 3.4 / 100
        ([], 512, 8192, 1, "788.60", 791),  # 788.60288; 790.60
        # unknown: L x 0.027 x C(X)
        ([UNKNOWN], 80, 2048, 1, "7.34", 9),  # 7.344
        ([UNKNOWN], 512, 8192, 1, "163.79", 166),  # 163.786752
        ([UNKNOWN], 512, 1024, 2, "30.41", 64),  # 30.4128; 63.82
    ],
)
def test_quotes_a_request(
    models: list[ModelFacts | None], max_length: int, max_context_length: int, n: int, quote: str, answer: int
) -> None:
    each = pricing.quote(models, max_length=max_length, max_context_length=max_context_length)

    assert str(each) == quote
    assert pricing.request_quote(each, n=n) == answer


@pytest.mark.parametrize(("image_count", "tax", "answer"), [(0, "1", 24), (1, "6", 29), (3, "16", 39), (16, "81", 104)])
def test_every_image_adds_five_to_the_tax_and_the_quote(image_count: int, tax: str, answer: int) -> None:
    assert pricing.tax(image_count=image_count) == Decimal(tax)
    assert pricing.request_quote(Decimal("21.76"), n=1, image_count=image_count) == answer


@pytest.mark.parametrize(("each", "answer"), [("0.50", 2), ("1.50", 4), ("0.51", 3), ("2.49", 4)])
def test_rounds_an_answer_half_to_even(each: str, answer: int) -> None:
    assert pricing.request_quote(Decimal(each), n=1) == answer


def settle(
    model: ModelFacts | None,
    *,
    reply_characters: int | None = 2000,
    prompt_characters: int = 8000,
    max_length: int = 512,
    is_backend_validated: bool = True,
    is_owner_trusted: bool = False,
    is_censored: bool = False,
    is_matched_targeting: bool = False,
) -> pricing.Settlement:
    return pricing.settle(
        PricedGeneration(
            model=model,
            reply_characters=reply_characters,
            prompt_characters=prompt_characters,
            max_length=max_length,
            is_backend_validated=is_backend_validated,
            is_owner_trusted=is_owner_trusted,
            is_censored=is_censored,
            is_matched_targeting=is_matched_targeting,
        )
    )


@pytest.mark.parametrize(
    ("model", "is_backend_validated", "is_owner_trusted", "reward", "charge"),
    [
        # an 8000 character prompt, a 2000 character reply, max_length 512
        (B8, True, False, "52.95", "53.95"),
        (B8, True, True, "52.95", "53.95"),
        (B70, True, False, "648.74", "649.74"),
        (B8, False, False, "15.88", "16.88"),
        (B70, False, True, "194.62", "195.62"),
        # unknown: C(p) = 1.6545 alone, or t x C(p) x 0.027
        (UNKNOWN, True, False, "1.65", "2.65"),
        (UNKNOWN, False, False, "1.65", "2.65"),
        (UNKNOWN, True, True, "22.34", "23.34"),
        (UNKNOWN, False, True, "22.34", "23.34"),
    ],
)
def test_settles_a_generation(
    model: ModelFacts | None, is_backend_validated: bool, is_owner_trusted: bool, reward: str, charge: str
) -> None:
    settlement = settle(model, is_backend_validated=is_backend_validated, is_owner_trusted=is_owner_trusted)

    assert (str(settlement.reward), str(settlement.charge)) == (reward, charge)


@pytest.mark.parametrize(
    ("reply_characters", "prompt_characters", "max_length", "reward"),
    [
        (80, 4096, 1024, "1.19"),  # 20 x C(1024) x 0.027 = 1.188
        (2048, 8192, 2048, "47.00"),  # 512 x C(2048) x 0.027 = 47.0016
        (2048, 1_000_000, 2048, "47.00"),
        (0, 0, 16, "0.52"),  # 16 x C(16) x 0.027: floor and cap of both texts
        (None, 8000, 512, "0.00"),
    ],
)
def test_settles_by_floor_and_cap_of_both_texts(
    reply_characters: int | None, prompt_characters: int, max_length: int, reward: str
) -> None:
    settlement = settle(
        UNKNOWN,
        reply_characters=reply_characters,
        prompt_characters=prompt_characters,
        max_length=max_length,
        is_owner_trusted=True,
    )

    assert str(settlement.reward) == reward


def test_a_prompt_counts_up_to_max_length_and_no_further() -> None:
    assert settle(B8, prompt_characters=2048) == settle(B8, prompt_characters=4_000_000)
    assert settle(B8, prompt_characters=2044) != settle(B8, prompt_characters=2048)


@pytest.mark.spec("PRC-27")
def test_an_empty_reply_is_charged_the_floor() -> None:
    assert settle(B8, reply_characters=0) == settle(B8, reply_characters=80)
    assert settle(B8, reply_characters=0).reward == Decimal("2.12")  # 20 x 8 / 125 x 1.6545


@pytest.mark.spec("PRC-13")
@pytest.mark.parametrize(
    ("reply_characters", "reward"),
    [(400, "10.59"), (2000, "52.95"), (2048, "54.22"), (8000, "54.22")],  # 100, 500 and 512 tokens
)
def test_a_short_reply_is_charged_for_its_own_length(reply_characters: int, reward: str) -> None:
    assert str(settle(B8, reply_characters=reply_characters).reward) == reward


@pytest.mark.parametrize("model", [B8, B70, UNKNOWN])
def test_a_censored_generation_costs_the_burn_and_earns_in_full(model: ModelFacts | None) -> None:
    settlement = settle(model, is_censored=True)

    assert settlement.charge == 1
    assert settlement.reward == settle(model).reward


@pytest.mark.parametrize(
    ("model", "is_owner_trusted", "reward"), [(B8, False, "5.29"), (UNKNOWN, False, "0.17"), (UNKNOWN, True, "2.23")]
)
def test_matched_targeting_leaves_a_tenth_of_a_settlement(
    model: ModelFacts | None, is_owner_trusted: bool, reward: str
) -> None:
    settlement = settle(model, is_owner_trusted=is_owner_trusted, is_matched_targeting=True)

    assert str(settlement.reward) == reward
    assert settlement.charge == settlement.reward + 1


@pytest.mark.parametrize(("models", "quote"), [([B8], "2.18"), ([UNKNOWN], "0.73"), ([], "3.54")])
def test_matched_targeting_leaves_a_tenth_of_a_quote(models: list[ModelFacts | None], quote: str) -> None:
    each = pricing.quote(models, max_length=80, max_context_length=2048, is_matched_targeting=True)

    assert str(each) == quote


@pytest.mark.parametrize(
    ("models", "max_length", "n", "kudos"),
    [
        ([B8], 512, 1, "195.05"),
        ([B70], 1024, 1, "3413.33"),
        ([B70], 1024, 3, "10239.99"),  # rounded, then times n
        ([UNKNOWN], 512, 1, "24.38"),  # M = 1
        ([], 512, 1, "20"),
        ([], 16, 20, "400"),
    ],
)
def test_asks_for_an_amount_upfront(models: list[ModelFacts | None], max_length: int, n: int, kudos: str) -> None:
    assert str(pricing.upfront_amount(models, max_length=max_length, n=n)) == kudos


@pytest.mark.spec("PRC-21")
@pytest.mark.parametrize(
    ("models", "upfront", "quote"),
    [
        ([B8], "195.05", "485.29"),
        ([B8, B70], "1706.67", "485.29"),
        ([B70, B8], "1706.67", "5946.26"),
        ([B8, UNKNOWN], "195.05", "485.29"),
        ([UNKNOWN, B8], "195.05", "163.79"),
        ([billions(0.5), UNKNOWN], "24.38", "30.33"),
    ],
)
def test_the_largest_model_counts_upfront_and_the_first_in_a_quote(
    models: list[ModelFacts | None], upfront: str, quote: str
) -> None:
    assert str(pricing.upfront_amount(models, max_length=512, n=1)) == upfront
    assert str(pricing.quote(models, max_length=512, max_context_length=8192)) == quote


def test_the_estimated_output_is_the_basis_of_a_charge() -> None:
    assert settle(B8).basis is ChargeBasis.OUTPUT_ESTIMATE


@pytest.mark.spec("PRC-04")
def test_one_place_in_the_code_decides_the_basis() -> None:
    names_a_basis = re.compile(r"ChargeBasis(\.|\[|\((?!StrEnum))|[\"']output_estimate[\"']")
    code = [path for root in CODE for path in (PROJECT / root).rglob("*.py") if "migrations" not in path.parts]

    deciding = [
        (str(path.relative_to(PROJECT)), line.strip())
        for path in code
        for line in path.read_text(encoding="utf-8").splitlines()
        if names_a_basis.search(line)
    ]

    assert sorted(deciding) == [
        ("billing_app/rules/pricing.py", "CHARGE_BASIS = ChargeBasis.OUTPUT_ESTIMATE"),
        ("hordechat/contract/vocabulary.py", 'OUTPUT_ESTIMATE = "output_estimate"'),
    ]


@given(
    model=st.one_of(st.none(), st.integers(1, 10**14).map(lambda count: ModelFacts(parameters=count))),
    reply_characters=st.integers(0, 100_000),
    max_length=st.integers(16, 16_384),
    max_context_length=st.integers(80, 1_048_576),
)
def test_amounts_are_never_negative_and_in_whole_hundredths(
    model: ModelFacts | None, reply_characters: int, max_length: int, max_context_length: int
) -> None:
    each = pricing.quote([model], max_length=max_length, max_context_length=max_context_length)
    settlement = settle(model, reply_characters=reply_characters, max_length=max_length)

    for kudos in (
        each,
        settlement.reward,
        settlement.charge,
        pricing.upfront_amount([model], max_length=max_length, n=20),
    ):
        assert kudos >= 0
        assert kudos == kudos.quantize(Decimal("0.01"))


@given(shorter=st.integers(0, 20_000), more=st.integers(0, 20_000), billion=st.integers(1, 700))
def test_a_longer_reply_never_costs_less(shorter: int, more: int, billion: int) -> None:
    model = billions(billion)

    assert settle(model, reply_characters=shorter).charge <= settle(model, reply_characters=shorter + more).charge
