"""What a worker's owner earns, and where it goes."""

from decimal import Decimal

import pytest

from billing_app.rules import earnings
from billing_app.rules.earnings import Earnings
from hordechat.model_reference.facts import ModelFacts
from tests.pricing.models import B1, B7, B8, B13, B70, UNKNOWN, billions


@pytest.mark.parametrize(
    ("max_context_length", "model", "is_backend_validated", "kudos"),
    [
        # 25 + 15 x context / 1024, x 0.5 unknown, x 0.3 not validated, x max(M / 7, 0.25)
        (2048, B7, True, "55.00"),
        (8192, B8, True, "165.71"),
        (8192, B8, False, "49.71"),
        (8192, B70, True, "1450.00"),
        (8192, UNKNOWN, True, "72.50"),
        (8192, UNKNOWN, False, "72.50"),
        (8192, B13, True, "269.29"),
        (8192, B1, True, "36.25"),  # a quarter at least
        (8192, billions(0.1), True, "36.25"),
        (8192, billions(1.75), True, "36.25"),
        (8192, billions(1.8), True, "37.29"),
        (262_144, B7, True, "3865.00"),
        (1_048_576, B7, True, "3865.00"),  # no more than 262144 counts
    ],
)
def test_pays_for_being_online(
    max_context_length: int, model: ModelFacts | None, is_backend_validated: bool, kudos: str
) -> None:
    reward = earnings.uptime_reward(
        model, max_context_length=max_context_length, is_backend_validated=is_backend_validated
    )

    assert str(reward) == kudos


@pytest.mark.parametrize(
    ("reward", "balance", "escrow"),
    [
        ("52.95", "26.47", "26.48"),  # 26.475: half to even
        ("10.00", "5.00", "5.00"),
        ("0.01", "0.01", "0.00"),
        ("0.03", "0.01", "0.02"),
        ("0.00", "0.00", "0.00"),
    ],
)
def test_keeps_half_of_a_new_owners_reward(reward: str, balance: str, escrow: str) -> None:
    parts = earnings.part_reward(Decimal(reward), is_trusted=False)

    assert (str(parts.balance), str(parts.escrow)) == (balance, escrow)
    assert parts.balance + parts.escrow == Decimal(reward)


def test_keeps_all_of_a_new_owners_uptime_reward() -> None:
    assert earnings.part_uptime_reward(Decimal("55.00"), is_trusted=False) == Earnings(
        balance=Decimal(0), escrow=Decimal("55.00")
    )


@pytest.mark.parametrize(("is_trusted", "is_anonymous"), [(True, False), (False, True), (True, True)])
def test_keeps_nothing_of_anyone_elses(is_trusted: bool, is_anonymous: bool) -> None:
    reward = Decimal("52.95")
    whole = Earnings(balance=reward, escrow=Decimal(0))

    assert earnings.part_reward(reward, is_trusted=is_trusted, is_anonymous=is_anonymous) == whole
    assert earnings.part_uptime_reward(reward, is_trusted=is_trusted, is_anonymous=is_anonymous) == whole
