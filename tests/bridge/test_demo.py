"""What the demo backend and the estimates do."""

import asyncio
import re
from typing import Any

import pytest

from hordechat.contract.vocabulary import Capability, FaultReason, FinishReason
from tests.bridge import stands
from workers_app.bridge import estimate
from workers_app.bridge.demo import DemoBackend, compose
from workers_app.bridge.values import FunctionCall, GenerationFailed, Payload, Reply

LABEL = "[demo reply, no model behind it]"
SAID = f"{LABEL} You said: "
ANY_OBJECT = '{"demo":"[demo reply, no model behind it]"}'

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PERSON_TEXT = '{"name":"x","age":0}'
ENDLESS = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
JSON_OBJECT = {"response_format": {"type": "json_object"}}


def json_schema(schema: object, *, strict: bool | None = True) -> dict[str, Any]:
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, "strict": strict}}
    }


def tools(*functions: tuple[str, object], choice: str | None = "required") -> dict[str, Any]:
    offered = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in functions]
    return {"tools": offered, "tool_choice": choice}


def make_payload(text: str = "Hello there", **changes: Any) -> Payload:
    return Payload.model_validate(stands.payload(**{"messages": [{"role": "user", "content": text}], **changes}))


@pytest.mark.parametrize(
    ("changes", "content", "finish_reason"),
    [
        ({}, SAID + "Hello there", FinishReason.STOP),
        ({"max_length": 11}, (SAID + "Hello there")[:44], FinishReason.LENGTH),
        ({"stop_sequence": ["there"]}, SAID + "Hello ", FinishReason.STOP),
        ({"stop_sequence": ["there", "Hello"]}, SAID, FinishReason.STOP),
        ({"stop_sequence": ["", "absent"]}, SAID + "Hello there", FinishReason.STOP),
        ({"stop_sequence": ["there"], "max_length": 11}, (SAID + "Hello there")[:44], FinishReason.LENGTH),
        ({"stop_sequence": ["[demo"]}, "", FinishReason.STOP),
        ({"messages": [{"role": "system", "content": "Be brief."}]}, SAID[:-7] + " said nothing.", FinishReason.STOP),
        (
            {
                "messages": [
                    {"role": "user", "content": "First"},
                    {"role": "assistant", "content": "Answer"},
                    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                ]
            },
            SAID + "a b",
            FinishReason.STOP,
        ),
    ],
)
def test_the_reply(changes: dict[str, Any], content: str, finish_reason: FinishReason) -> None:
    reply = compose(Payload.model_validate(stands.payload(**changes)))

    assert (reply.content, reply.finish_reason, reply.prompt_tokens) == (content, finish_reason, None)


def test_the_same_conversation_gets_the_same_reply() -> None:
    assert compose(make_payload()) == compose(make_payload(seed=5, temperature=0.1))


@pytest.mark.parametrize(
    ("changes", "content"),
    [
        (JSON_OBJECT, ANY_OBJECT),
        ({**JSON_OBJECT, "stop_sequence": ["demo", "}", '"']}, ANY_OBJECT),
        ({**JSON_OBJECT, "max_length": 11}, ANY_OBJECT),  # all 44 characters
        (json_schema(PERSON), PERSON_TEXT),
        (json_schema(PERSON, strict=False), PERSON_TEXT),
        (json_schema(PERSON, strict=None), PERSON_TEXT),
        ({**json_schema(PERSON), "stop_sequence": ["x", ","]}, PERSON_TEXT),
        ({**json_schema(PERSON), "max_length": 5}, PERSON_TEXT),  # all 20 characters
        ({**json_schema(PERSON), "messages": [{"role": "system", "content": "Be brief."}]}, PERSON_TEXT),
        (json_schema({"enum": ["größer"]}), '"größer"'),
        (json_schema({"type": ["string", "object"]}, strict=False), "{}"),  # without `strict` only objects are taken
        ({**tools(("look_up", PERSON), choice="auto"), **JSON_OBJECT}, ANY_OBJECT),
        ({**tools(("look_up", ENDLESS), choice=None), **json_schema(PERSON)}, PERSON_TEXT),
        ({"response_format": {"type": "text"}}, SAID + "Hello there"),
        (tools(("look_up", PERSON), choice="auto"), SAID + "Hello there"),
        (tools(("look_up", PERSON), choice=None), SAID + "Hello there"),
        ({"tools": [], "tool_choice": "required"}, SAID + "Hello there"),
    ],
)
def test_the_content_follows_the_response_format(changes: dict[str, Any], content: str) -> None:
    reply = compose(make_payload(**changes))

    assert reply == Reply(content, FinishReason.STOP)


@pytest.mark.parametrize(
    ("changes", "name", "arguments"),
    [
        (tools(("look_up", PERSON)), "look_up", PERSON_TEXT),
        (tools(("first", PERSON), ("second", {})), "first", PERSON_TEXT),
        (tools(("anything", {})), "anything", "{}"),
        (tools(("either", {"anyOf": [{"type": "string"}, PERSON]})), "either", PERSON_TEXT),
        (
            {"tools": [{"type": "function", "function": {"name": "bare"}}], "tool_choice": "required"},
            "bare",
            "{}",
        ),
        ({**tools(("look_up", PERSON)), "parallel_tool_calls": False}, "look_up", PERSON_TEXT),
        ({**tools(("look_up", PERSON)), "parallel_tool_calls": True}, "look_up", PERSON_TEXT),
        ({**tools(("look_up", PERSON)), "stop_sequence": ["name", "look_up"]}, "look_up", PERSON_TEXT),
        ({**tools(("look_up", PERSON)), "max_length": 5}, "look_up", PERSON_TEXT),
        ({**tools(("look_up", PERSON)), **json_schema(ENDLESS)}, "look_up", PERSON_TEXT),
    ],
)
def test_a_required_tool_is_called_once(changes: dict[str, Any], name: str, arguments: str) -> None:
    reply = compose(make_payload(**changes))

    [call] = reply.tool_calls
    assert reply == Reply(None, FinishReason.TOOL_CALLS, tool_calls=(call,))
    assert call.function == FunctionCall(name=name, arguments=arguments)
    assert re.fullmatch(r"call_[0-9a-f]{24}", call.id)


def test_a_conversation_that_goes_on_gets_another_call_id_and_the_same_one_the_same() -> None:
    asked = tools(("look_up", PERSON))
    question = {"role": "user", "content": "Who is it?"}
    [call] = compose(make_payload(messages=[question], **asked)).tool_calls
    answered = [
        question,
        {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]},
        {"role": "tool", "tool_call_id": call.id, "content": "Nobody."},
    ]

    [again] = compose(make_payload(messages=[question], **asked)).tool_calls
    [later] = compose(make_payload(messages=answered, **asked)).tool_calls
    [other] = compose(make_payload(messages=[question], **tools(("ask", PERSON)))).tool_calls

    assert again == call
    assert len({call.id, later.id, other.id}) == 3


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(json_schema(ENDLESS), id="schema"),
        pytest.param(json_schema(ENDLESS, strict=False), id="schema that is not strict"),
        pytest.param(json_schema(None), id="no schema"),
        pytest.param({"response_format": {"type": "json_schema"}}, id="no description"),
        pytest.param({**json_schema(PERSON), "max_length": 4}, id="schema above the length"),
        pytest.param({**JSON_OBJECT, "max_length": 10}, id="object above the length"),
        pytest.param(tools(("look_up", ENDLESS), ("fine", {})), id="tool"),
        pytest.param({**tools(("look_up", PERSON)), "max_length": 4}, id="arguments above the length"),
        pytest.param({"tools": [{"type": "function"}], "tool_choice": "required"}, id="no function"),
    ],
)
def test_what_cannot_be_obeyed_whole_is_handed_back(changes: dict[str, Any]) -> None:
    with pytest.raises(GenerationFailed) as failed:
        asyncio.run(DemoBackend().generate(make_payload(**changes)))

    assert failed.value.reason is FaultReason.UNBUILDABLE_GRAMMAR


@pytest.mark.parametrize(("characters", "fits"), [(300, True), (301, False)])
def test_refuses_a_prompt_whose_estimate_does_not_fit(characters: int, fits: bool) -> None:
    payload = make_payload("x" * characters, max_length=28, max_context_length=128)

    if fits:
        assert asyncio.run(DemoBackend().generate(payload)).content
    else:
        with pytest.raises(GenerationFailed) as failed:
            asyncio.run(DemoBackend().generate(payload))
        assert failed.value.reason is FaultReason.PROMPT_OVERFLOW


def test_declares_what_it_keeps() -> None:
    assert DemoBackend().features == {
        Capability.PROMPT_OVERFLOW_REFUSED,
        Capability.SEED,
        Capability.TOOLS,
        Capability.JSON_OBJECT,
        Capability.JSON_SCHEMA,
        Capability.TOOLS_WITH_RESPONSE_FORMAT,
        Capability.TOOL_CHOICE_ENFORCED,
        Capability.SINGLE_TOOL_CALL_ENFORCED,
        Capability.STRUCTURED_OUTPUT_ENFORCED,
    }


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("word " * 300, 500, 540),  # three characters a token
        ("7" * 300, 300, 340),  # a token a digit
        ("語" * 300, 450, 490),  # two bytes a token, three bytes a character
    ],
)
def test_the_careful_estimate_is_on_the_high_side(text: str, least: int, most: int) -> None:
    assert least <= estimate.careful_tokens(make_payload(text)) <= most


def test_the_careful_estimate_counts_tools() -> None:
    offered = [{"type": "function", "function": {"name": "x" * 300}}]

    assert estimate.careful_tokens(make_payload(tools=offered)) > estimate.careful_tokens(make_payload()) + 100
