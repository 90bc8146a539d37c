"""A submission is sized by what the serving workers declare, and its status tells what was changed."""

from typing import Any

import pytest

from tests.horde import TRACES, Horde, count_rows, one_value

LIMITS = {"max_context_length": 4096, "max_length": 1024}


def characters_for(tokens: int) -> str:
    """Return a user's text whose flattened message is estimated at that many tokens."""
    return "x" * (3 * tokens - len("user: "))


@pytest.mark.spec("CTX-05", "CTX-40", "CTX-41")
def test_keeps_what_fits_the_default_context(horde: Horde) -> None:
    request_id = horde.queued(messages=[{"role": "user", "content": characters_for(2048 - 64)}])

    assert horde.status(request_id)[1]["context_adjustments"] is None
    assert one_value("SELECT max_context_length FROM waiting_prompts WHERE context_adjustments IS NULL") == 2048


@pytest.mark.spec("CTX-01", "CTX-02", "CTX-03", "CTX-04", "POP-19")
def test_grows_the_context(horde: Horde) -> None:
    request_id = horde.queued(messages=[{"role": "user", "content": characters_for(2048 - 64 + 1)}])

    assert horde.status(request_id)[1]["context_adjustments"] == [{"from": 2048, "to": 4096, "reason": "grow"}]
    assert horde.pop()[1]["payload"]["max_context_length"] == 4096


@pytest.mark.spec("CTX-07", "CTX-11", "CTX-12", "CTX-13")
@pytest.mark.parametrize(("sent", "before"), [(2000, 2000), (None, 512)])
def test_lowers_the_length_to_what_workers_give(horde: Horde, sent: int | None, before: int) -> None:
    horde.pop(chat_limits={"max_context_length": 4096, "max_length": 300})
    request_id = horde.submit(max_tokens=sent)[1]["id"]

    adjustments = [{"from": before, "to": 300, "reason": "worker_max_length"}]
    assert horde.status(request_id)[1]["context_adjustments"] == adjustments
    payload = horde.pop(chat_limits={"max_context_length": 4096, "max_length": 300})[1]["payload"]
    assert payload["max_length"] == 300


@pytest.mark.spec("FLT-18", "FLT-19", "CTX-30", "CTX-54")
def test_drops_the_oldest_turns_and_keeps_what_was_submitted(horde: Horde) -> None:
    horde.pop(chat_limits=LIMITS)
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": characters_for(3000)},
        {"role": "assistant", "content": "Old answer"},
        {"role": "user", "content": characters_for(2000)},
    ]

    request_id = horde.submit(messages=messages)[1]["id"]

    [grown, trimmed] = horde.status(request_id)[1]["context_adjustments"]
    assert grown == {"from": 2048, "to": 4096, "reason": "grow"}
    assert (trimmed["reason"], trimmed["dropped_messages"]) == ("truncate_oldest", 2)
    assert trimmed["from"] > 4096 - 64 >= trimmed["to"]
    assert horde.pop(chat_limits=LIMITS)[1]["payload"]["messages"] == [messages[0], messages[3]]
    assert one_value("SELECT prompt LIKE '%%Old answer%%' FROM waiting_prompts") is False
    assert one_value("SELECT submitted_prompt LIKE '%%Old answer%%' FROM waiting_prompts") is True


@pytest.mark.spec("CTX-29", "CTX-44")
def test_refuses_what_fits_no_worker(horde: Horde) -> None:
    horde.pop(chat_limits=LIMITS)
    before = count_rows(*TRACES)

    assert horde.submit(messages=[{"role": "user", "content": characters_for(4096 - 64 + 1)}]) == (
        400,
        {
            "message": "The prompt is estimated at 4033 tokens, "
            "which with max_length 64 does not fit a context of 4096 tokens.",
            "rc": "PromptExceedsContext",
        },
    )
    assert count_rows(*TRACES) == before


@pytest.mark.spec("ORD-21", "ORD-22")
@pytest.mark.parametrize(("is_known", "rc"), [(False, "UnknownChatModel"), (True, "NoEligibleWorker")])
def test_judges_the_model_before_the_size(horde: Horde, is_known: bool, rc: str) -> None:
    if is_known:
        horde.pop()
        one_value("UPDATE workers SET maintenance = true RETURNING 1")

    assert horde.submit(messages=[{"role": "user", "content": characters_for(100_000)}])[1]["rc"] == rc


@pytest.mark.spec("MDL-19", "MDL-20", "CTX-53")
def test_reads_the_limits_over_all_models_and_workers_that_serve(horde: Horde) -> None:
    horde.pop(chat_limits={"max_context_length": 3000, "max_length": 1024})
    other: dict[str, Any] = {"models": ["other/model"], "model_id": "other/model"}
    horde.pop(name="two", chat_limits={"max_context_length": 2500, "max_length": 2000}, **other)
    horde.pop(name="three", chat_limits={"max_context_length": 9000, "max_length": 9000}, **other)
    one_value("UPDATE workers SET maintenance = true WHERE name = 'three' RETURNING 1")

    models = ["demo/echo", "other/model"]
    messages = [{"role": "user", "content": characters_for(700)}]
    status, body = horde.submit(model=None, models=models, max_tokens=5000, messages=messages)

    assert status == 202
    assert horde.status(body["id"])[1]["context_adjustments"] == [
        {"from": 5000, "to": 2000, "reason": "worker_max_length"},
        {"from": 2048, "to": 3000, "reason": "grow"},
    ]
    # No worker has both the length and the context: the request waits, and its client is told.
    assert "No online worker can serve this request now." in body["message"]
    assert horde.status(body["id"])[1]["is_possible"] is False


def test_refuses_images_once_everything_else_is_judged(horde: Horde) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    messages = [{"role": "user", "content": [image]}]
    assert horde.submit(messages=messages, api_key="nobody")[0] == 401
    assert horde.submit(messages=messages)[1]["rc"] == "UnknownChatModel"
    horde.pop()
    before = count_rows(*TRACES)

    status, body = horde.submit(messages=messages)

    assert (status, body["rc"]) == (503, "ChatImageStorageUnavailable")
    assert count_rows(*TRACES) == before


@pytest.mark.spec("CTX-50", "FTR-29")
def test_needs_nothing_of_a_dropped_image(horde: Horde) -> None:
    horde.pop(chat_limits=LIMITS)
    image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    messages = [
        {"role": "user", "content": [image]},
        {"role": "user", "content": characters_for(4096 - 64)},
    ]

    status, body = horde.submit(messages=messages)

    assert status == 202
    needed = one_value("SELECT chat_required_features FROM waiting_prompts WHERE id = %s", [body["id"]])
    assert needed == ["prompt_overflow_refused"]
