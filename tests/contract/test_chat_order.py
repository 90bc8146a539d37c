"""Of several faults in one body, the first of the documented order is named."""

import copy
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from hordechat.contract import chat
from hordechat.errors import HordeError
from tests.contract.bodies import BODY, USER, answer, image, said, tool

MEBIBYTE = 1024 * 1024
STRICT = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}}

Body = dict[str, Any]


def options(sent: Body) -> Body:
    held: Body = sent.setdefault("horde", {})
    return held


FAULTS: dict[str, Callable[[Body], object]] = {
    "unknown top-level keys": lambda sent: sent.update(logprobs=None),
    "wrong types": lambda sent: sent.update(temperature="x"),
    "ranges of several values": lambda sent: sent.update(n=2),
    "unknown horde keys": lambda sent: options(sent).update(models=1),
    "message count": lambda sent: sent["messages"].extend([USER] * 1025),
    "messages in order": lambda sent: sent["messages"][0].update(role="function"),
    "total text": lambda sent: sent["messages"][1].update(content="x" * (MEBIBYTE + 1)),
    "count of images": lambda sent: sent["messages"].insert(2, {"role": "user", "content": [image()] * 21}),
    "tool shapes": lambda sent: sent.update(tools=[{"type": "x"}]),
    "tool limits": lambda sent: sent.update(response_format=STRICT),
    "history": lambda sent: sent["messages"].insert(2, answer("c")),
    "conflicts": lambda sent: sent.update(max_tokens=64, max_completion_tokens=65),
}
"""One fault of each kind, in the documented order; images come right after the total of the text."""


def refuse_with(*names: str) -> HordeError:
    sent = copy.deepcopy({**BODY, "messages": [USER, USER]})
    for name in reversed(names):
        FAULTS[name](sent)
    with pytest.raises(HordeError) as refused:
        chat.parse(sent)
    return refused.value


@pytest.mark.spec("RFS-34", "HIS-22")
@pytest.mark.parametrize(("first", "second"), list(combinations(FAULTS, 2)))
def test_the_earlier_of_two_faults_is_named(first: str, second: str) -> None:
    assert said(refuse_with(first, second)) == said(refuse_with(first))
    assert said(refuse_with(first)) != said(refuse_with(second))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"models": ["b"], "max_tokens": 64, "max_completion_tokens": 65},
            "'model' and 'models' cannot be sent together.",
        ),
        (
            {"max_tokens": 64, "max_completion_tokens": 65, "horde": {"only": ["a"], "ignore": ["a"]}},
            "'max_tokens' and 'max_completion_tokens' differ.",
        ),
        (
            {"horde": {"only": ["a"], "ignore": ["a"]}, "tool_choice": "auto"},
            "'horde.only' and 'horde.ignore' cannot be sent together.",
        ),
        (
            {"tool_choice": "auto", "parallel_tool_calls": True},
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
        ),
        (
            {
                "tools": [tool()],
                "tool_choice": {"type": "function", "function": {"name": "other"}},
                "response_format": {"type": "json_object"},
                "horde": {"openai_guards": True},
            },
            "Tool choice 'other' not found in 'tools' parameter.",
        ),
    ],
)
def test_of_two_conflicts_the_same_one_is_always_named(changes: Body, message: str) -> None:
    with pytest.raises(HordeError) as refused:
        chat.parse({**BODY, **changes})

    assert said(refused.value) == ("ChatRequestConflict", message)


def test_a_message_is_judged_by_its_role_then_its_keys_then_their_values() -> None:
    message: Body = {"role": "function", "weight": 1, "content": 1, "name": ""}
    named = []
    for repaired in ({"role": "user"}, {"weight": ...}, {"name": "n"}, {"content": "a"}):
        with pytest.raises(HordeError) as refused:
            chat.parse({**BODY, "messages": [message]})
        named.append(refused.value.message.partition(" ")[0])
        message = {key: value for key, value in {**message, **repaired}.items() if value is not ...}

    assert named == ["messages[0].role=function", "messages[0].weight", "'messages[0].name'", "'messages[0].content'"]
    chat.parse({**BODY, "messages": [message]})
