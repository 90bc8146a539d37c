"""The replacement filter at intake: whom it concerns, what it rewrites, and what it leaves alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from hordechat.contract import chat
from hordechat.infra import clock, redis
from hordechat.model_reference import published, reference, refresh
from hordechat.model_reference.reference import ProcessCopy
from requests_app.services import intake, prompt_filters
from tests.horde import MODEL, TRACES, Horde, chat_body, count_rows, one_value

NSFW = "own/Lewd"


@pytest.fixture
def flagged(horde: Horde) -> Horde:
    """Let the requester be flagged, and a worker serve."""
    one_value("UPDATE users SET is_flagged = true WHERE id = %s RETURNING 1", [horde.requester.id])
    horde.pop(chat_limits={"max_context_length": 2048, "max_length": 1024})
    return horde


@pytest.fixture
def nsfw_model(horde: Horde, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve a model that the operator's reference marks."""
    file = tmp_path / "reference.json"
    redis.marks().delete(published.KEY)
    file.write_bytes(orjson.dumps({NSFW: {"parameters": 8_000_000_000, "nsfw": True}}))
    settings.HORDE = settings.HORDE.model_copy(update={"text_model_reference": str(file)})
    refresh.refresh(now=clock.now())
    copy = ProcessCopy(place=str(file))
    copy.take_published()
    monkeypatch.setattr(reference, "_copy", copy)
    horde.pop(models=[NSFW], model_id=NSFW)
    yield
    redis.marks().delete(published.KEY)


def add_filter(regex: str, replacement: str = "") -> None:
    prompt_filters.add(regex=regex, replacement=replacement, now=clock.now())


def stored(column: str) -> Any:
    value = one_value(f"SELECT {column}::text FROM waiting_prompts")
    return orjson.loads(value) if column in {"messages", "chat_extras", "context_adjustments"} and value else value


def texts() -> list[object]:
    return [message["content"] for message in stored("messages")]


def ask(*contents: object) -> list[dict[str, object]]:
    return [
        {"role": "user" if place % 2 == 0 else "assistant", "content": content}
        for place, content in enumerate(contents)
    ]


@pytest.mark.spec("FLT-15", "FLT-14", "FLT-17", "FLT-28", "RTE-13")
def test_a_flagged_users_texts_are_rewritten_and_flattened_anew(flagged: Horde) -> None:
    add_filter("dragon", "lizard")

    assert flagged.submit(messages=ask("A (dragon:1.3), small!", "Yes?", "c h i l d"))[0] == 202

    assert texts() == ["A lizard small", "Yes", "adult"]
    assert stored("prompt") == "user: A lizard small\nassistant: Yes\nuser: adult"
    assert stored("submitted_prompt") == "user: A (dragon:1.3), small!\nassistant: Yes?\nuser: c h i l d"


@pytest.mark.spec("FLT-16", "FLT-31")
def test_texts_that_are_emptied_stay_as_empty_ones(flagged: Horde) -> None:
    add_filter("dragon")

    assert flagged.submit(messages=ask("dragon", "Dragon!", "dragon dragon"))[0] == 202

    assert texts() == ["", "", ""]
    assert stored("prompt") == "user: \nassistant: \nuser: "


@pytest.mark.spec("FLT-29", "FLT-30")
def test_each_part_is_rewritten_by_itself(flagged: Horde) -> None:
    add_filter("dragon")
    parts = [{"type": "text", "text": text} for text in ("a dragon", "dragon", "drag", "on")]

    assert flagged.submit(messages=[{"role": "user", "content": parts}])[0] == 202

    assert [part["text"] for part in stored("messages")[0]["content"]] == ["a", "", "drag", "on"]


@pytest.mark.spec("FLT-32")
@pytest.mark.parametrize("model", [MODEL, "elinas/chronos-70b-v2"])
def test_everybody_elses_texts_stay_byte_for_byte(horde: Horde, model: str) -> None:
    add_filter("dragon", "lizard")
    horde.pop(models=[model], model_id=model)
    sent = "A (dragon:1.3), a  child é\u0301\r\n\ttab…"

    with CaptureQueriesContext(connection) as captured:
        assert horde.submit(model=model, messages=ask(sent))[0] == 202

    assert texts() == [sent]
    assert stored("prompt") == stored("submitted_prompt") == f"user: {sent}"
    assert [query for query in captured if "prompt_filters" in query["sql"]] == []


@pytest.mark.spec("ORD-23", "FLT-18", "FLT-19", "FLT-20")
def test_what_is_trimmed_is_what_was_rewritten(flagged: Horde) -> None:
    add_filter("dragon")
    # 6,300 characters are 2,100 tokens, over the 2,048 there are; without its dragons the first turn is nothing.
    long = "dragon " * 900
    fitting = flagged.submit(messages=ask(long, "Yes", "Now"))
    assert fitting[0] == 202
    assert texts() == ["", "Yes", "Now"]
    assert stored("context_adjustments") is None
    one_value("DELETE FROM queue_rows RETURNING 1")
    one_value("DELETE FROM waiting_prompts RETURNING 1")

    assert flagged.submit(messages=ask("knight " * 900, "dragon?", "A dragon"))[0] == 202

    assert texts() == ["A"]
    assert stored("context_adjustments")[0]["dropped_messages"] == 2
    assert stored("submitted_prompt").startswith("user: knight knight")
    assert stored("submitted_prompt").endswith("assistant: dragon?\nuser: A dragon")


@pytest.mark.spec("FLT-22")
def test_tools_calls_and_formats_are_left_alone(flagged: Horde) -> None:
    add_filter("dragon", "lizard")
    flagged.pop(
        chat_features=["tools", "json_schema", "tools_with_response_format", "prompt_overflow_refused"],
        chat_limits={"max_context_length": 2048, "max_length": 1024},
    )
    tool = {"type": "function", "function": {"name": "dragon", "description": "A dragon (old:1.2)."}}
    call = {"id": "c", "type": "function", "function": {"name": "dragon", "arguments": '{"dragon": "child"}'}}
    answer_format = {"type": "json_schema", "json_schema": {"name": "dragon", "schema": {"title": "dragon"}}}
    messages = [
        {"role": "user", "content": "The dragon", "name": "dragon"},
        {"role": "assistant", "content": "dragon", "tool_calls": [call]},
        {"role": "tool", "content": "dragon", "tool_call_id": "c"},
    ]
    body = chat_body(messages=messages, tools=[tool], response_format=answer_format)

    intake.submit_chat(
        api_key=flagged.requester.api_key, submission=chat.parse(body), address=None, client_agent="x", now=clock.now()
    )

    assert texts() == ["The lizard", "lizard", "lizard"]
    assert stored("messages")[0]["name"] == "dragon"
    assert stored("messages")[1]["tool_calls"] == [call]
    assert stored("chat_extras") == {"tools": [tool], "response_format": answer_format}


@pytest.mark.usefixtures("nsfw_model")
class TestAnNsfwModel:
    """The text route's rule: a marked model, and a prompt that is about age or that a filter finds."""

    @pytest.mark.spec("FLT-15")
    @pytest.mark.parametrize(
        ("sent", "kept"),
        [("A small child!", "A small adult"), ("A small dragon!", "A small lizard"), ("A small cat!", "A small cat!")],
    )
    def test_it_is_rewritten_where_that_is_called_for(self, horde: Horde, sent: str, kept: str) -> None:
        add_filter("dragon", "lizard")

        assert horde.submit(model=NSFW, messages=ask(sent))[0] == 202

        assert texts() == [kept]

    @pytest.mark.spec("FLT-20", "FLT-10")
    def test_a_dropped_turn_counts(self, horde: Horde) -> None:
        horde.pop(models=[NSFW], model_id=NSFW, chat_limits={"max_context_length": 2048, "max_length": 1024})

        assert horde.submit(model=NSFW, messages=ask("child " * 1200, "Yes!", "Now, then!"))[0] == 202

        assert texts() == ["Now then"]

    def test_beside_another_model_it_still_counts(self, horde: Horde) -> None:
        horde.pop(name="worker two")

        assert horde.submit(model=None, models=[MODEL, NSFW], messages=ask("A child!"))[0] == 202

        assert texts() == ["A adult"]

    def test_text_goes_by_the_same_rule(self, horde: Horde) -> None:
        assert horde.submit_text(prompt="A child!", models=[NSFW])[0] == 202

        assert (stored("prompt"), stored("submitted_prompt")) == ("A adult", "A child!")


class TestText:
    """A text request's prompt is rewritten as a whole, and refused when nothing is left of it."""

    def test_a_flagged_users_prompt_is_rewritten(self, flagged: Horde) -> None:
        add_filter("dragon", "lizard")

        assert flagged.submit_text(prompt="The dragon, he said.")[0] == 202

        assert (stored("prompt"), stored("submitted_prompt")) == ("The lizard he said", "The dragon, he said.")

    def test_a_prompt_of_which_nothing_is_left_is_refused(self, flagged: Horde) -> None:
        add_filter("dragon")
        before = count_rows(*TRACES)

        status, body = flagged.submit_text(prompt="dragon dragon!")

        assert (status, body["rc"]) == (400, "CorruptPrompt")
        assert "dragon" not in body["message"]
        assert count_rows(*TRACES) == before

    def test_it_is_sized_as_it_was_sent(self, flagged: Horde) -> None:
        add_filter("dragon")

        status, body = flagged.submit_text(prompt="dragon " * 900 + "end", context_fit="reject")

        assert (status, body["rc"]) == (400, "PromptExceedsContext")
