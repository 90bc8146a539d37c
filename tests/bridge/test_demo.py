"""What the demo backend and the estimates do."""

import asyncio

import pytest

from hordechat.contract.vocabulary import Capability, FinishReason
from tests.bridge import stands
from workers_app.bridge import estimate
from workers_app.bridge.demo import DemoBackend, compose
from workers_app.bridge.values import FaultReason, GenerationFailed, Payload

SAID = "[demo reply, no model behind it] You said: "


def make_payload(text: str = "Hello there", **changes: object) -> Payload:
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
def test_the_reply(changes: dict[str, object], content: str, finish_reason: FinishReason) -> None:
    reply = compose(Payload.model_validate(stands.payload(**changes)))

    assert (reply.content, reply.finish_reason, reply.prompt_tokens) == (content, finish_reason, None)


def test_the_same_conversation_gets_the_same_reply() -> None:
    assert compose(make_payload()) == compose(make_payload(seed=5, temperature=0.1))


@pytest.mark.parametrize(("characters", "fits"), [(300, True), (301, False)])
def test_refuses_a_prompt_whose_estimate_does_not_fit(characters: int, fits: bool) -> None:
    payload = make_payload("x" * characters, max_length=28, max_context_length=128)

    if fits:
        assert asyncio.run(DemoBackend().generate(payload)).content
    else:
        with pytest.raises(GenerationFailed) as failed:
            asyncio.run(DemoBackend().generate(payload))
        assert failed.value.reason is FaultReason.PROMPT_OVERFLOW


def test_declares_that_it_refuses_a_prompt_too_long() -> None:
    assert DemoBackend().features == {Capability.PROMPT_OVERFLOW_REFUSED, Capability.SEED}


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
    tools = [{"type": "function", "function": {"name": "x" * 300}}]

    assert estimate.careful_tokens(make_payload(tools=tools)) > estimate.careful_tokens(make_payload()) + 100
