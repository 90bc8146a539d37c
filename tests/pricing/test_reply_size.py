"""What of a reply counts."""

from typing import Any

import pytest

from hordechat.contract import submit
from hordechat.contract.chat.submission import ToolCall
from hordechat.contract.reply_size import chat_reply_characters

CALLS = (
    ToolCall(id="call_0123456789", name="get_time", arguments='{"zone":"UTC"}'),  # 8 + 14
    ToolCall(id="x", name="now", arguments=""),  # 3
)


@pytest.mark.spec("PRC-05", "PRC-06", "PRC-27")
@pytest.mark.parametrize(
    ("reply", "characters"),
    [
        ({"content": "Hello"}, 5),
        ({"content": ""}, 0),
        ({"content": None}, 0),
        ({"content": "Hello", "reasoning_content": None}, 5),
        ({"content": "Hello", "reasoning_content": "Greet."}, 11),
        ({"content": "", "reasoning_content": "Greet."}, 6),
        ({"content": None, "tool_calls": CALLS}, 25),
        ({"content": "Hello", "reasoning_content": "Greet.", "tool_calls": CALLS}, 36),
        ({"content": "é👍\n"}, 3),
        ({"content": "e\u0301"}, 2),
        ({"content": "\ufffd"}, 1),
    ],
)
def test_counts_content_reasoning_and_calls_in_code_points(reply: dict[str, Any], characters: int) -> None:
    assert chat_reply_characters(**reply) == characters


@pytest.mark.spec("PRC-06")
def test_a_call_counts_the_same_whatever_its_id() -> None:
    longer = [ToolCall(id=call.id * 9, name=call.name, arguments=call.arguments) for call in CALLS]

    assert chat_reply_characters(content=None, tool_calls=longer) == chat_reply_characters(
        content=None, tool_calls=CALLS
    )


@pytest.mark.spec("PRC-05", "PRC-27")
def test_a_workers_reply_counts_after_its_nuls_are_replaced() -> None:
    message = {"role": "assistant", "content": "a\0b👍", "reasoning_content": "\0\0c"}
    body = submit.parse({"id": "x", "message": message, "finish_reason": "stop", "model_id": "demo/echo"})

    assert submit.read_chat_reply(body).characters == 4 + 3
