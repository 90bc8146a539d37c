"""Every number of docs/kudos.md is what the code computes."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from billing_app.rules import earnings, pricing
from billing_app.rules.accounts import AccountKind, minimum_kudos
from billing_app.rules.allowance import AllowanceCurve
from billing_app.rules.pricing import PricedGeneration
from hordechat.model_reference import table
from hordechat.model_reference.facts import ModelFacts
from tests.spec.rows import PROJECT

PAGE = (PROJECT / "docs" / "kudos.md").read_text(encoding="utf-8")


def rows_of(*, heading: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of the one table whose head has this column last."""
    [found] = re.findall(rf"^\| ([^\n]*\| {heading}) \|\n\| ---[^\n]*\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE)
    head, body = found
    for line in body.splitlines():
        yield dict(zip(head.split(" | "), line.strip("| ").split(" | "), strict=True))


def models_of(text: str) -> list[ModelFacts | None]:
    return [table.bundled().find(name) for name in re.findall(r"`([^`]+)`", text)]


def test_the_quotes() -> None:
    rows = list(rows_of(heading="quote"))

    for row in rows:
        each = pricing.quote(
            models_of(row["models"]),
            max_length=int(row["max_tokens"]),
            max_context_length=int(row["context length"]),
        )
        assert str(each) == row["one answer"]
        quoted = pricing.request_quote(each, n=int(row["n"]), image_count=int(row["images"]))
        assert str(quoted) == row["quote"]
    assert len(rows) == 10


def settle(row: Mapping[str, str]) -> pricing.Settlement:
    return pricing.settle(
        PricedGeneration(
            model=models_of(row["model"])[0],
            reply_characters=int(row["reply characters"]),
            prompt_characters=int(row["prompt characters"]),
            max_length=int(row["max_tokens"]),
            is_backend_validated=row["validated backend"] == "yes",
            is_owner_trusted=row["trusted owner"] == "yes",
        )
    )


def test_the_settlements() -> None:
    rows = list(rows_of(heading="you pay"))

    for row in rows:
        settlement = settle(row)
        assert (str(settlement.reward), str(settlement.charge)) == (row["settlement"], row["you pay"])
    assert len(rows) == 9


def test_the_example_at_the_top() -> None:
    first = settle(next(iter(rows_of(heading="you pay"))))

    total = pricing.tax() + first.charge

    assert f"costs 1 + {first.reward} + 1 = {total} kudos" in PAGE


def test_the_amounts_held() -> None:
    rows = list(rows_of(heading="held"))

    for row in rows:
        held = pricing.upfront_amount(models_of(row["models"]), max_length=int(row["max_tokens"]), n=int(row["n"]))
        assert str(held) == row["held"]
    assert len(rows) == 7


def test_the_rewards_for_being_online() -> None:
    rows = list(rows_of(heading="reward"))

    for row in rows:
        reward = earnings.uptime_reward(
            models_of(row["first model"])[0],
            max_context_length=int(row["context length"]),
            is_backend_validated=row["validated backend"] == "yes",
        )
        assert str(reward) == row["reward"]
    assert len(rows) == 5


def test_the_context_multipliers() -> None:
    [head, multipliers] = re.findall(r"^  \| (?:x|C\(x\)) \| (.*) \|$", PAGE, re.MULTILINE)

    for tokens, multiplier in zip(head.split(" | "), multipliers.split(" | "), strict=True):
        number = int(re.match(r"\d+", tokens)[0])  # type: ignore[index] # every column begins with its number
        assert f"{pricing.context_multiplier(number):.4f}".rstrip("0").rstrip(".") == multiplier


def test_the_numbers_in_the_text() -> None:
    [bonus] = re.findall(r"It is ([\d.]+) for 70\.55", PAGE)
    [earned, waiting, spendable] = re.findall(r"of ([\d.]+) earned, ([\d.]+) wait and ([\d.]+) can be spent", PAGE)[0]
    parts = earnings.part_reward(Decimal(earned), is_trusted=False)
    curve = AllowanceCurve()

    assert f"{pricing.parameter_bonus(70.55):.4f}" == bonus
    assert (str(parts.escrow), str(parts.balance)) == (waiting, spendable)
    assert [curve.tokens_at(60 * minutes) for minutes in (1, 3, 5)] == [4096, 2304, 512]
    assert [
        int(minimum_kudos(kind=AccountKind.BALANCE, is_pseudonymous=pseudonymous, is_anonymous=anonymous))
        for pseudonymous, anonymous in ((False, False), (True, False), (False, True))
    ] == [25, 14, -50]
