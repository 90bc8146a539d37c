"""The flattened prompt is exact: text for text, label for label."""

import pytest

from hordechat.contract.chat import Message
from hordechat.contract.chat.submission import TextPart, Tool, ToolCall, ToolChoice
from hordechat.contract.vocabulary import Role
from requests_app.rules.flattening import estimate_prompt_tokens, flatten
from tests.rules.submissions import (
    CLOCK,
    IMAGE,
    NONE,
    REQUIRED,
    STRICT,
    WEATHER,
    answer,
    assistant,
    calls,
    pictures,
    submission,
    system,
    tools,
    user,
)

mark = pytest.mark
CALL = '{"id":"c1","type":"function","function":{"name":"read_clock","arguments":"{}"}}'
SECOND = CALL.replace("c1", "c2")


@pytest.mark.parametrize(
    ("messages", "flattened"),
    [
        pytest.param([user("Hello")], "user: Hello", marks=mark.spec("FLT-02")),
        pytest.param(
            [system("Be brief."), user("Hi"), assistant("Ho"), user("Off")],
            "system: Be brief.\nuser: Hi\nassistant: Ho\nuser: Off",
            marks=mark.spec("FLT-02", "FLT-03"),
        ),
        pytest.param(
            [Message(role=Role.USER, content=(TextPart(text="One"), TextPart(text=""), TextPart(text="three")))],
            "user: One\n\nthree",
            marks=mark.spec("FLT-03"),
        ),
        pytest.param([user("")], "user: "),
        pytest.param([user(" two\nlines ")], "user:  two\nlines "),
        pytest.param([pictures(2)], "user: Look\n[image]\n[image]", marks=mark.spec("FLT-04")),
        pytest.param(
            [Message(role=Role.USER, content=(IMAGE, TextPart(text="this")))],
            "user: [image]\nthis",
            marks=mark.spec("FLT-04"),
        ),
        pytest.param([calls("c1")], f"assistant: [{CALL}]", marks=mark.spec("FLT-05", "FLT-25", "FLT-34")),
        pytest.param([calls("c1", content="")], f"assistant: [{CALL}]", marks=mark.spec("FLT-25")),
        pytest.param([calls("c1", content="Wait")], f"assistant: Wait\n[{CALL}]", marks=mark.spec("FLT-05", "FLT-25")),
        pytest.param([calls("c1", "c2")], f"assistant: [{CALL},{SECOND}]", marks=mark.spec("FLT-05")),
        pytest.param(
            [calls("c1"), answer("c1", "noon")], f"assistant: [{CALL}]\ntool: noon", marks=mark.spec("FLT-06", "FLT-24")
        ),
        pytest.param(
            [Message(role=Role.TOOL, content=(TextPart(text="a"), TextPart(text="b")), tool_call_id="c1")],
            "tool: a\nb",
            marks=mark.spec("FLT-06"),
        ),
        pytest.param([Message(role=Role.ASSISTANT, content=None)], "assistant: ", marks=mark.spec("FLT-34")),
        pytest.param([Message(role=Role.USER, content="Hi", name="Ann")], "user: Hi", marks=mark.spec("FLT-24")),
        pytest.param(
            [
                Message(
                    role=Role.ASSISTANT,
                    content=None,
                    tool_calls=(ToolCall(id="é", name="f", arguments='{"wo": "Köln", "a": 1}'),),
                )
            ],
            'assistant: [{"id":"é","type":"function","function":{"name":"f","arguments":"{\\"wo\\": \\"Köln\\", '
            '\\"a\\": 1}"}}]',
            marks=mark.spec("FLT-27"),
        ),
    ],
)
def test_a_conversation_is_flattened(messages: list[Message], flattened: str) -> None:
    assert flatten(submission(), messages=messages) == flattened


@pytest.mark.spec("FLT-07", "FLT-26", "FLT-27")
@pytest.mark.parametrize("choice", [None, NONE, REQUIRED])
def test_the_tools_follow_the_last_message_in_the_clients_own_order_of_keys(choice: ToolChoice | None) -> None:
    sent = submission(messages=(user("Hi"), user("Ho")), tools=tools(WEATHER, CLOCK), tool_choice=choice)

    assert flatten(sent, messages=sent.messages) == (
        "user: Hi\nuser: Ho\n"
        '[{"type":"function","function":{"name":"lookup_weather","parameters":{"type":"object",'
        '"description":"Wo gäbe es Regen?"}}},{"function":{"name":"read_clock"},"type":"function"}]'
    )


@pytest.mark.spec("FLT-08")
@pytest.mark.parametrize("used", [(), tools(CLOCK)])
def test_a_response_format_is_no_part_of_it(used: tuple[Tool, ...]) -> None:
    sent = submission(tools=used, response_format=STRICT)

    assert flatten(sent, messages=sent.messages) == flatten(submission(tools=used), messages=sent.messages)


@pytest.mark.parametrize(
    ("characters", "images", "tokens"),
    [
        pytest.param(1, 0, 1, marks=mark.spec("FLT-23")),
        pytest.param(3, 0, 1, marks=mark.spec("FLT-23")),
        pytest.param(4, 0, 2, marks=mark.spec("FLT-23")),
        pytest.param(5904, 0, 1968, marks=mark.spec("FLT-23")),
        pytest.param(5905, 0, 1969, marks=mark.spec("FLT-23")),
        pytest.param(6, 1, 514, marks=mark.spec("FLT-12")),
        pytest.param(7, 20, 10243, marks=mark.spec("FLT-12")),
    ],
)
def test_an_estimate_is_a_third_of_the_characters_and_512_an_image(characters: int, images: int, tokens: int) -> None:
    assert estimate_prompt_tokens(characters=characters, images=images) == tokens
