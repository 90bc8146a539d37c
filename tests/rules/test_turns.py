"""A conversation falls into turns, of which the oldest may be dropped.

A conversation is written with a letter for each message: s system, u user, a assistant, c assistant with a tool call,
t the answer of a tool.
"""

import pytest

from hordechat.contract.chat import Message
from requests_app.rules.turns import list_droppable_turns, list_turns
from tests.rules.submissions import answer, assistant, calls, system, user

mark = pytest.mark
MESSAGES = {"s": system(), "u": user(), "a": assistant(), "c": calls("c1", "c2"), "t": answer("c1")}


def read(letters: str) -> list[Message]:
    return [MESSAGES[letter] for letter in letters]


@pytest.mark.parametrize(
    ("conversation", "turns"),
    [
        pytest.param("uaua", "ua ua", marks=mark.spec("CTX-24")),
        pytest.param("uaau", "ua a u", marks=mark.spec("CTX-24", "CTX-26")),
        pytest.param("uuau", "u ua u", marks=mark.spec("CTX-24", "CTX-26")),
        pytest.param("auu", "a u u", marks=mark.spec("CTX-26")),
        pytest.param("ctu", "ct u", marks=mark.spec("CTX-25")),
        pytest.param("acttctau", "a ctt ct a u", marks=mark.spec("CTX-25", "CTX-26")),
        pytest.param("uactu", "ua ct u", marks=mark.spec("CTX-24", "CTX-25")),
        pytest.param("ucttau", "uctt a u", marks=mark.spec("CTX-46")),
        pytest.param("uctctau", "uct ct a u", marks=mark.spec("CTX-46")),
        pytest.param("susasus", "ua u", marks=mark.spec("CTX-27", "CTX-48")),
        pytest.param("usctsau", "uct a u", marks=mark.spec("CTX-48")),
        pytest.param("ss", "", marks=mark.spec("CTX-27")),
    ],
)
def test_messages_make_turns(conversation: str, turns: str) -> None:
    found = list_turns(read(conversation))

    assert " ".join("".join(conversation[place] for place in turn) for turn in found) == turns


@pytest.mark.parametrize(
    ("conversation", "droppable"),
    [
        pytest.param("uauau", "ua ua", marks=mark.spec("CTX-28")),
        pytest.param("uaua", "ua", marks=mark.spec("CTX-28")),
        pytest.param("uauctcta", "ua", marks=mark.spec("CTX-28")),
        pytest.param("suauauct", "ua ua", marks=mark.spec("CTX-27", "CTX-28")),
        pytest.param("sua", "", marks=mark.spec("CTX-28")),
        pytest.param("auaa", "a", marks=mark.spec("CTX-28")),
        pytest.param("uu", "u", marks=mark.spec("CTX-28")),
        pytest.param("ucttau", "uctt a", marks=mark.spec("CTX-28", "CTX-46")),
        pytest.param("aaa", "a a", marks=mark.spec("CTX-47")),
        pytest.param("actt", "a", marks=mark.spec("CTX-47")),
        pytest.param("scts", "", marks=mark.spec("CTX-47")),
        pytest.param("s", ""),
    ],
)
def test_turns_before_the_latest_user_message_may_go(conversation: str, droppable: str) -> None:
    found = list_droppable_turns(read(conversation))

    assert " ".join("".join(conversation[place] for place in turn) for turn in found) == droppable
