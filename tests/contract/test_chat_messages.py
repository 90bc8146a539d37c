"""Messages are kept as they were sent, or refused with the path of the first fault."""

from typing import Any

import pytest

from hordechat.contract.vocabulary import Role
from hordechat.errors import ErrorCode
from tests.contract.bodies import (
    ABSENT,
    USER,
    answer,
    bad,
    call,
    calling,
    image,
    limited,
    parse,
    refuse,
    refuse_messages,
    said,
    unsupported,
)

TEXT = {"type": "text", "text": "a"}
NO_NAME = "has to be a string of 1 to 64 characters."
NO_ID = "has to be a string of 1 to 256 characters."
NO_FUNCTION_NAME = "has to be a string of 1 to 64 letters, digits, underscores and hyphens."
NO_CONTENT = "has to be a string or a list of parts."


def spoken(role: str, **members: object) -> dict[str, object]:
    return {"role": role, "content": "a", **members}


@pytest.mark.spec("REQ-05", "REQ-26", "REQ-27", "REQ-45", "REQ-46", "REQ-49", "REQ-52", "TLS-24", "TLS-25")
def test_keeps_messages_as_they_were_sent() -> None:
    parts = [TEXT, {"type": "text", "text": ""}]
    sent = [
        {"role": "system", "content": "", "name": "s"},
        {"role": "user", "content": parts, "name": "n" * 64},
        {"role": "assistant", "content": "b", "name": "a"},
        {"role": "assistant", "content": "c", "tool_calls": [call("1"), call("2")], "name": "a"},
        {"role": "tool", "content": parts, "tool_call_id": "2"},
        {"role": "tool", "content": "", "tool_call_id": "1"},
    ]

    assert [message.as_json() for message in parse(messages=sent).messages] == sent


@pytest.mark.spec("REQ-28")
def test_a_developer_becomes_system_in_its_place() -> None:
    messages = parse(messages=[USER, spoken("developer", name="d"), spoken("system")]).messages

    assert [message.role for message in messages] == [Role.USER, Role.SYSTEM, Role.SYSTEM]
    assert messages[1].as_json() == {"role": "system", "content": "a", "name": "d"}


KEYS = [
    # role, key, whether a message of the role may have it
    ("system", "name", True),
    ("developer", "name", True),
    ("user", "name", True),
    ("assistant", "name", True),
    ("tool", "name", False),
    ("system", "tool_calls", False),
    ("developer", "tool_calls", False),
    ("user", "tool_calls", False),
    ("assistant", "tool_calls", True),
    ("tool", "tool_calls", False),
    ("system", "tool_call_id", False),
    ("developer", "tool_call_id", False),
    ("user", "tool_call_id", False),
    ("assistant", "tool_call_id", False),
    ("tool", "tool_call_id", True),
    *[(role, "refusal", False) for role in ("system", "developer", "user", "assistant", "tool")],
    *[(role, "audio", False) for role in ("system", "developer", "user", "assistant", "tool")],
    *[(role, "function_call", False) for role in ("system", "developer", "user", "assistant", "tool")],
    *[(role, "reasoning_content", False) for role in ("system", "developer", "user", "assistant", "tool")],
]
VALUES: dict[str, object] = {"name": "n", "tool_calls": [call()], "tool_call_id": "c"}


@pytest.mark.spec("RFS-04", "RFS-05", "RFS-06", "RFS-07", "RFS-27", "REQ-27", "REQ-45", "TLS-19")
@pytest.mark.parametrize(("role", "key", "may_have_it"), KEYS)
def test_a_message_has_the_keys_of_its_role_alone(role: str, key: str, may_have_it: bool) -> None:
    needed = {"tool_call_id": "c"} if role == "tool" else {}
    sent = [spoken(role, **{**needed, key: VALUES.get(key)})]
    if role == "tool":
        sent = [calling("c"), *sent]
    place = len(sent) - 1
    if key == "tool_calls":
        sent.append(answer("c"))

    if may_have_it:
        assert len(parse(messages=sent).messages) == len(sent)
    else:
        assert said(refuse(messages=sent)) == unsupported(f"messages[{place}].{key}")


@pytest.mark.spec("RFS-06", "RFS-07", "RFS-08", "RFS-09", "RFS-10", "RFS-27", "REQ-48", "IMG-05")
@pytest.mark.parametrize(
    ("message", "named"),
    [
        (spoken("user", weight=None), "messages[0].weight"),
        (spoken("user", tool_calls=[]), "messages[0].tool_calls"),
        (spoken("tool", tool_call_id="c", name="n"), "messages[0].name"),
        (spoken("function"), "messages[0].role=function"),
        (spoken("x" * 100), "messages[0].role=" + "x" * 64),
        (spoken("User"), "messages[0].role=User"),
        (spoken("user", content=[TEXT, {"type": "input_audio"}]), "messages[0].content[1].type=input_audio"),
        (spoken("assistant", content=[image()]), "messages[0].content[0].type=image_url"),
        (spoken("system", content=[image()]), "messages[0].content[0].type=image_url"),
        (spoken("developer", content=[TEXT, image()]), "messages[0].content[1].type=image_url"),
        (spoken("tool", content=[image()], tool_call_id="c"), "messages[0].content[0].type=image_url"),
        (spoken("assistant", content=[{"type": "refusal"}]), "messages[0].content[0].type=refusal"),
        (spoken("user", content=[{**TEXT, "b": None}]), "messages[0].content[0].b"),
    ],
)
def test_refuses_what_a_message_cannot_hold_with_its_path(message: object, named: str) -> None:
    assert said(refuse_messages(message, USER)) == unsupported(named)


@pytest.mark.spec("RFS-31", "REQ-46", "REQ-47", "REQ-48", "REQ-52", "TLS-26", "RFS-29")
@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"content": "a"}, "role' has to be a string."),
        ({"role": None, "content": "a"}, "role' has to be a string."),
        ({"role": ["user"], "content": "a"}, "role' has to be a string."),
        ({"role": "user"}, f"content' {NO_CONTENT}"),
        ({"role": "tool", "tool_call_id": "c"}, f"content' {NO_CONTENT}"),
        ({"role": "assistant"}, f"content' {NO_CONTENT}"),
        ({"role": "assistant", "tool_calls": None}, f"content' {NO_CONTENT}"),
        ({"role": "assistant", "content": [], "tool_calls": [call()]}, f"content' {NO_CONTENT}"),
        *[(spoken(role, content=None), f"content' {NO_CONTENT}") for role in ("system", "user", "assistant")],
        (spoken("user", content=1), f"content' {NO_CONTENT}"),
        (spoken("user", content=[]), f"content' {NO_CONTENT}"),
        (spoken("user", content={}), f"content' {NO_CONTENT}"),
        (spoken("user", content=["a"]), "content[0]' has to be an object."),
        (spoken("user", content=[{"text": "a"}]), "content[0].type' has to be a string."),
        (spoken("user", content=[{"type": None, "text": "a"}]), "content[0].type' has to be a string."),
        (spoken("user", content=[{"type": "text"}]), "content[0].text' has to be a string."),
        (spoken("user", content=[{"type": "text", "text": 1}]), "content[0].text' has to be a string."),
        (spoken("user", content=[TEXT, {"type": "text", "text": None}]), "content[1].text' has to be a string."),
        *[(spoken("user", name=name), f"name' {NO_NAME}") for name in ("", "n" * 65, None, 1)],
        (spoken("tool"), f"tool_call_id' {NO_ID}"),
        *[(spoken("tool", tool_call_id=each), f"tool_call_id' {NO_ID}") for each in ("", "c" * 257, None, 1)],
    ],
)
def test_refuses_a_broken_message_with_its_path(message: object, complaint: str) -> None:
    assert said(refuse_messages(USER, message)) == bad(f"'messages[1].{complaint}")


@pytest.mark.spec("RFS-26", "RFS-30")
@pytest.mark.parametrize("messages", [ABSENT, None, {}, "Hello", 1])
def test_refuses_messages_that_are_no_list(messages: object) -> None:
    error = refuse(messages=messages)

    assert error.code is ErrorCode.BAD_REQUEST
    assert list(error.extra["errors"]) == ["messages"]  # type: ignore[call-overload] # a dict, by REQ-35


@pytest.mark.spec("RFS-26", "RFS-30")
@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "'messages' has to hold at least one message."),
        ([USER, "Hello"], "'messages[1]' has to be an object."),
        ([None], "'messages[0]' has to be an object."),
        ([[USER]], "'messages[0]' has to be an object."),
    ],
)
def test_refuses_messages_that_are_no_objects(messages: object, complaint: str) -> None:
    assert said(refuse(messages=messages)) == bad(complaint)


@pytest.mark.spec("RFS-13", "RFS-14", "RFS-28")
def test_takes_1024_messages_and_no_more() -> None:
    assert len(parse(messages=[USER] * 1024).messages) == 1024
    assert said(refuse(messages=[USER] * 1025)) == limited("messages holds more than 1024 messages.")


MEBIBYTE = 1024 * 1024
HALF = "é" * (MEBIBYTE // 4)

COUNTED: list[tuple[str, list[dict[str, Any]]]] = [
    ("contents", [spoken("user", content=HALF), spoken("system", content=HALF)]),
    ("parts", [spoken("user", content=[{"type": "text", "text": HALF}, {"type": "text", "text": HALF}])]),
    ("answers", [calling("c"), answer("c", HALF), spoken("user", content=HALF[:-6]), spoken("user", content="x" * 6)]),
    (
        "calls",
        [
            {
                "role": "assistant",
                "tool_calls": [call("c", "n" * 64, HALF[:-16] + "a" * 32), call("d", "n" * 64, HALF[:-64])],
            },
            answer("c", ""),
            answer("d", ""),
        ],
    ),
]


@pytest.mark.spec("RFS-15", "RFS-16", "RFS-17", "RFS-28")
@pytest.mark.parametrize("messages", [messages for _, messages in COUNTED], ids=[name for name, _ in COUNTED])
def test_takes_a_mebibyte_of_utf8_text_and_no_more(messages: list[Any]) -> None:
    assert len(parse(messages=messages).messages) == len(messages)
    assert said(refuse_messages(*messages, spoken("user"))) == limited(
        "messages holds more than 1048576 bytes of text."
    )


@pytest.mark.spec("RFS-35")
def test_names_ids_urls_and_definitions_are_not_text() -> None:
    sent: list[dict[str, object]] = [
        spoken("user", content=[{"type": "text", "text": "x" * MEBIBYTE}, image("https://example.org/" + "x" * 5000)]),
        {"role": "assistant", "content": "", "tool_calls": [{**call("i" * 256, "n", "")}]},
        spoken("tool", content="", tool_call_id="i" * 256),
        spoken("user", content="", name="n" * 64),
    ]
    one_letter = [{**sent[0], "content": [{"type": "text", "text": "x" * (MEBIBYTE - 1)}]}, *sent[1:]]

    assert len(parse(messages=one_letter, tools=[{"type": "function", "function": {"name": "n"}}]).messages) == 4
    assert refuse(messages=sent).message == "messages holds more than 1048576 bytes of text."


@pytest.mark.spec("TLS-22", "REQ-47", "TLS-43")
@pytest.mark.parametrize(("content", "kept"), [(ABSENT, None), (None, None), ("", ""), ("a", "a"), ([TEXT], [TEXT])])
def test_beside_calls_a_content_may_be_anything_or_nothing(content: object, kept: object) -> None:
    message = {key: value for key, value in {**calling("c"), "content": content}.items() if value is not ABSENT}

    stored = parse(messages=[message, answer("c")]).messages[0].as_json()

    assert stored == {"role": "assistant", "content": kept, "tool_calls": [call("c")]}


@pytest.mark.spec("TLS-20", "TLS-38")
def test_an_assistant_makes_1_to_128_calls() -> None:
    ids = [f"id{number}" for number in range(128)]

    assert len(parse(messages=[calling(*ids), *map(answer, ids)]).messages[0].tool_calls) == 128
    assert said(refuse_messages(calling(*ids, "one more"))) == limited(
        "messages[0].tool_calls holds more than 128 tool calls."
    )
    assert said(refuse_messages(calling())) == bad(
        "'messages[0].tool_calls' has to be a list of at least one tool call."
    )
    assert parse(messages=[spoken("assistant", tool_calls=None)]) == parse(messages=[spoken("assistant")])


FUNCTION = {"name": "look", "arguments": ""}

NO_ARGUMENTS: tuple[dict[str, object], ...] = ({}, {"arguments": None}, {"arguments": {}})

CALLS: list[tuple[object, tuple[str, str]]] = [
    # a tool call, and what is said of it
    ("x", bad("'messages[0].tool_calls[0]' has to be an object.")),
    ({**call(), "type": ABSENT}, bad("'messages[0].tool_calls[0].type' has to be a string.")),
    ({**call(), "type": "custom", "custom": {}}, unsupported("messages[0].tool_calls[0].type=custom")),
    ({**call(), "index": 0}, unsupported("messages[0].tool_calls[0].index")),
    *[
        ({**call(), "id": call_id}, bad(f"'messages[0].tool_calls[0].id' {NO_ID}"))
        for call_id in (ABSENT, None, "", "i" * 257, 1)
    ],
    *[
        ({**call(), "function": function}, bad("'messages[0].tool_calls[0].function' has to be an object."))
        for function in (ABSENT, None, "look", [])
    ],
    ({**call(), "function": {**FUNCTION, "strict": 1}}, unsupported("messages[0].tool_calls[0].function.strict")),
    *[
        (
            {**call(), "function": {**FUNCTION, "name": name}},
            bad(f"'messages[0].tool_calls[0].function.name' {NO_FUNCTION_NAME}"),
        )
        for name in (None, "", "n" * 65, "a b", "é", "a\n", 1)
    ],
    *[
        (
            {**call(), "function": {"name": "look", **arguments}},
            bad("'messages[0].tool_calls[0].function.arguments' has to be a string."),
        )
        for arguments in NO_ARGUMENTS
    ],
]


@pytest.mark.spec("TLS-21", "TLS-34", "TLS-35", "TLS-37", "TLS-39")
@pytest.mark.parametrize(("sent", "refusal"), CALLS)
def test_refuses_a_broken_call_with_its_path(sent: object, refusal: tuple[str, str]) -> None:
    if isinstance(sent, dict):
        sent = {key: value for key, value in sent.items() if value is not ABSENT}

    assert said(refuse_messages({"role": "assistant", "tool_calls": [sent]})) == refusal


@pytest.mark.spec("TLS-37", "TLS-38")
@pytest.mark.parametrize("calls", [{}, "x", 1, True])
def test_refuses_calls_that_are_no_list(calls: object) -> None:
    assert refuse_messages(spoken("assistant", tool_calls=calls)).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("TLS-26", "TLS-39")
@pytest.mark.parametrize("call_id", ["i", "i" * 256, "é" * 256, "a b\n"])
@pytest.mark.parametrize("arguments", ["", "{}", "no JSON", "{" * 1000])
def test_ids_and_arguments_are_free_text(call_id: str, arguments: str) -> None:
    sent = [{"role": "assistant", "content": None, "tool_calls": [call(call_id, "a-Z_9", arguments)]}, answer(call_id)]

    assert [message.as_json() for message in parse(messages=sent).messages] == sent
