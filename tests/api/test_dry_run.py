"""A dry run answers what a request would cost, after the same checks, and leaves nothing."""

from typing import Any

import pytest

from tests.horde import TRACES, Horde, chat_body, count_rows

LIMITS = {"max_context_length": 4096, "max_length": 300}


def dry_run(
    horde: Horde, *, api_key: str | None = None, options: dict[str, Any] | None = None, **changes: Any
) -> tuple[int, dict[str, Any]]:
    return horde.submit(chat_body(horde={"dry_run": True, **(options or {})}, **changes), api_key=api_key)


@pytest.mark.spec("RTE-29", "HOP-30", "HOP-45", "CTX-37")
def test_quotes_and_leaves_nothing(horde: Horde) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    status, body = dry_run(horde)

    # "system: Be kind.\nuser: Hello there" is 34 characters, at three a token.
    assert (status, body) == (200, {"kudos": 8.0, "estimated_prompt_tokens": 12, "resolved": {"context_fit": "grow"}})
    assert body["kudos"] == horde.submit()[1]["kudos"]
    assert count_rows(*TRACES) == before | {"waiting_prompts": 1, "queue_rows": 1, "transfers": before["transfers"] + 1}


@pytest.mark.spec("CTX-14", "CTX-36")
def test_is_lowered_and_trimmed_as_a_real_submission(horde: Horde) -> None:
    horde.pop(chat_limits=LIMITS)
    messages = [{"role": "user", "content": "x" * 9000}, {"role": "user", "content": "y" * 6000}]

    trimmed = dry_run(horde, messages=messages, max_tokens=5000)[1]
    kept_alone = dry_run(horde, messages=messages[1:], max_tokens=300, options={"max_context_length": 4096})[1]

    assert trimmed == kept_alone
    assert trimmed["estimated_prompt_tokens"] == 2002


@pytest.mark.parametrize("mode", ["grow", "reject"])
def test_reports_the_mode_it_was_sized_under(horde: Horde, mode: str) -> None:
    horde.pop()

    assert dry_run(horde, options={"context_fit": mode})[1]["resolved"] == {"context_fit": mode}


@pytest.mark.spec("MDL-09", "MDL-12", "HOP-46")
def test_passes_the_same_checks(horde: Horde) -> None:
    long = [{"role": "user", "content": "x" * 90_000}]
    assert dry_run(horde, api_key="nobody")[1]["rc"] == "InvalidAPIKey"
    assert dry_run(horde)[1]["rc"] == "UnknownChatModel"
    assert dry_run(horde, model="elinas/chronos-70b-v2")[1]["rc"] == "NoEligibleWorker"
    horde.pop()
    assert dry_run(horde, messages=long)[1]["rc"] == "PromptExceedsContext"


@pytest.mark.spec("IMG-26")
def test_includes_the_tax_of_images_and_stores_none(horde: Horde) -> None:
    horde.pop()
    image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    text = {"type": "text", "text": "See"}
    plain = dry_run(horde, messages=[{"role": "user", "content": [text]}])[1]
    before = count_rows(*TRACES)

    status, body = dry_run(horde, messages=[{"role": "user", "content": [text, image, image]}])

    assert (status, body["kudos"]) == (200, plain["kudos"] + 2 * 5)
    assert count_rows(*TRACES) == before


@pytest.mark.spec("CTX-15", "CTX-20", "CTX-43")
def test_an_explicit_context_and_mode_are_served(horde: Horde) -> None:
    horde.pop(chat_limits=LIMITS)
    too_long = [{"role": "user", "content": "x" * 9000}]

    explicit = horde.submit(horde={"max_context_length": 8192})
    rejected = horde.submit(messages=too_long, horde={"context_fit": "reject"})
    grown = horde.submit(messages=[*too_long, *too_long], horde={"context_fit": "grow"})

    assert explicit[0] == 202
    body = horde.status(explicit[1]["id"])[1]
    assert (body["is_possible"], body["context_adjustments"]) == (False, None)
    assert (rejected[0], rejected[1]["rc"]) == (400, "PromptExceedsContext")
    assert "a context of 2048 tokens" in rejected[1]["message"]
    assert "a context of 4096 tokens" in grown[1]["message"]
