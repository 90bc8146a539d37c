"""The history of tool calls follows OpenAI's rule: each call is answered at once, and once."""

from typing import Any

import pytest

from tests.contract.bodies import USER, answer, calling, limited, parse, refuse_messages, said

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
NO_CALL = "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
REPLY = {"role": "assistant", "content": "Done."}
SYSTEM = {"role": "system", "content": "Be brief."}


def not_found(call_id: str) -> str:
    return f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message."


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([USER, calling("a"), answer("a")], marks=pytest.mark.spec("HIS-01", "HIS-24")),
        pytest.param([calling("a", "b"), answer("a"), answer("b")], marks=pytest.mark.spec("HIS-01")),
        pytest.param([calling("a", "b", "c"), answer("c"), answer("a"), answer("b")], marks=pytest.mark.spec("HIS-02")),
        pytest.param([calling("a"), answer("a"), calling("a"), answer("a")], marks=pytest.mark.spec("HIS-04")),
        pytest.param([USER, calling("a"), answer("a"), REPLY, USER], marks=pytest.mark.spec("HIS-16")),
        pytest.param([calling("a"), answer("a"), calling("b"), answer("b"), REPLY], marks=pytest.mark.spec("HIS-16")),
        pytest.param([calling("a"), answer("a"), USER], marks=pytest.mark.spec("HIS-16")),
    ],
)
def test_takes_whole_rounds(messages: list[Any]) -> None:
    assert len(parse(messages=messages).messages) == len(messages)


BREAKS = [
    # the history, the path of its break, and what OpenAI says of it
    pytest.param(
        [USER, calling("a"), REPLY], "messages[2].role", UNANSWERED + "a", marks=pytest.mark.spec("HIS-07", "HIS-08")
    ),
    pytest.param([calling("a"), USER], "messages[1].role", UNANSWERED + "a", marks=pytest.mark.spec("HIS-07")),
    pytest.param(
        [calling("a"), SYSTEM, answer("a")], "messages[1].role", UNANSWERED + "a", marks=pytest.mark.spec("HIS-07")
    ),
    pytest.param(
        [calling("a"), calling("b"), answer("b")],
        "messages[1].role",
        UNANSWERED + "a",
        marks=pytest.mark.spec("HIS-07"),
    ),
    pytest.param(
        [calling("b", "a", "c"), answer("a"), USER],
        "messages[2].role",
        UNANSWERED + "b, c",
        marks=pytest.mark.spec("HIS-08", "HIS-18"),
    ),
    pytest.param([USER, answer("a")], "messages[1].role", NO_CALL, marks=pytest.mark.spec("HIS-09", "HIS-11")),
    pytest.param([answer("a")], "messages[0].role", NO_CALL, marks=pytest.mark.spec("HIS-09", "HIS-23")),
    pytest.param(
        [calling("a"), answer("a"), USER, answer("a")], "messages[3].role", NO_CALL, marks=pytest.mark.spec("HIS-09")
    ),
    pytest.param(
        [calling("a", "b"), answer("a"), answer("a")],
        "messages[2].role",
        NO_CALL,
        marks=pytest.mark.spec("HIS-10", "HIS-11"),
    ),
    pytest.param(
        [calling("a"), answer("a"), answer("a")],
        "messages[2].role",
        NO_CALL,
        marks=pytest.mark.spec("HIS-10", "HIS-20"),
    ),
    pytest.param(
        [calling("a"), answer("a"), answer("z")], "messages[2].role", NO_CALL, marks=pytest.mark.spec("HIS-20")
    ),
    pytest.param(
        [calling("a"), answer("z")],
        "messages[1].tool_call_id",
        not_found("z"),
        marks=pytest.mark.spec("HIS-12", "HIS-13"),
    ),
    pytest.param(
        [calling("a"), answer("a"), calling("b"), answer("a")],
        "messages[3].tool_call_id",
        not_found("a"),
        marks=pytest.mark.spec("HIS-12"),
    ),
    pytest.param(
        [calling("a", "b", "a")],
        "messages[0].tool_calls",
        "Duplicate tool call id 'a'.",
        marks=pytest.mark.spec("HIS-03", "HIS-14", "HIS-21"),
    ),
    pytest.param(
        [USER, calling("a", "b"), answer("b")], "messages", UNANSWERED + "a", marks=pytest.mark.spec("HIS-15")
    ),
    pytest.param([calling("b", "a")], "messages", UNANSWERED + "b, a", marks=pytest.mark.spec("HIS-15", "HIS-18")),
    pytest.param(
        [calling("a"), USER, answer("z"), calling("b", "b")],
        "messages[1].role",
        UNANSWERED + "a",
        marks=pytest.mark.spec("HIS-19"),
    ),
]


@pytest.mark.spec("HIS-05", "HIS-06", "HIS-17")
@pytest.mark.parametrize(("messages", "path", "sentence"), BREAKS)
def test_names_the_first_break_in_openais_words(messages: list[Any], path: str, sentence: str) -> None:
    assert said(refuse_messages(*messages)) == limited(f"{path}: {sentence}")
