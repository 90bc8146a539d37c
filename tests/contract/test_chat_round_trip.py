"""A submission can be written back as a body, and that body says the same."""

import orjson
import pytest
from hypothesis import given

from hordechat.contract import chat
from hordechat.contract.chat import ChatSubmission
from tests.contract.bodies import BODY, answer, calling, image, parse, tool
from tests.contract.strategies import submissions, valid_bodies


@given(submissions())
def test_a_dumped_submission_parses_to_itself(submission: ChatSubmission) -> None:
    assert chat.parse(chat.dump(submission)) == submission


@given(submissions())
def test_a_dumped_submission_survives_the_wire(submission: ChatSubmission) -> None:
    assert chat.parse(orjson.loads(orjson.dumps(chat.dump(submission)))) == submission


@given(valid_bodies())
def test_parsing_changes_nothing_of_the_body(sent: dict[str, object]) -> None:
    before = orjson.dumps(sent)

    chat.parse(sent)

    assert orjson.dumps(sent) == before


@pytest.mark.parametrize(
    "sent",
    [
        BODY,
        {"models": ["a", "b"], "messages": [{"role": "user", "content": [image(detail="low")]}]},
        {**BODY, "messages": [calling("a", "b"), answer("b"), answer("a")], "max_completion_tokens": 16},
        {**BODY, "tools": [tool(strict=None)], "tool_choice": "none", "parallel_tool_calls": False},
        {**BODY, "response_format": {"type": "json_object"}, "stream": True, "horde": {"openai_guards": False}},
    ],
)
def test_a_dumped_body_parses_to_the_same(sent: dict[str, object]) -> None:
    assert chat.parse(chat.dump(chat.parse(sent))) == chat.parse(sent)


def test_writes_nothing_that_is_at_its_default() -> None:
    assert chat.dump(parse(horde={}, tools=[], stream=False, response_format={"type": "text"})) == {
        **BODY,
        "max_tokens": 512,
    }
