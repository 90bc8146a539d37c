"""What the bridge sends, judged by the contract the server judges it by."""

from typing import Any

import pytest

from hordechat.contract import pop, submit
from hordechat.contract.vocabulary import Capability
from workers_app.bridge.horde import Declaration
from workers_app.bridge.values import SERVABLE


def test_the_declaration_is_taken_whole() -> None:
    body = Declaration(
        name="my worker",
        model="demo/echo",
        max_context_length=8192,
        max_length=1024,
        threads=2,
        features=frozenset(SERVABLE),
    ).dump()

    declared = pop.read_declaration(pop.parse(body))

    assert declared == pop.ChatDeclaration(
        accepts_chat_jobs=True,
        accepts_prompt_jobs=False,
        features=tuple(sorted(set(Capability) - {Capability.VISION})),
        max_context_length=8192,
        max_length=1024,
        tools_max_temperature=None,
        model_id="demo/echo",
        image_transports=(),
    )


@pytest.mark.parametrize("native", [{}, {"native_finish_reason": "eos"}])
def test_a_reply_is_taken(native: dict[str, Any]) -> None:
    sent = {
        "id": "g-1",
        "model_id": "demo/echo",
        "message": {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."},
        "finish_reason": "stop",
        "completion_tokens": 3,
        **native,
    }

    reply = submit.read_chat_reply(submit.parse(sent))

    assert (reply.content, reply.reasoning_content, reply.completion_tokens) == ("Yes.", "Hm.", 3)


def test_a_fault_is_taken_for_one_of_a_chat() -> None:
    sent = {"id": "g-1", "state": "faulted", "model_id": "demo/echo", "fault_reason": "prompt_overflow"}

    parsed = submit.parse(sent)

    assert (parsed.is_fault, parsed.is_chat) == (True, True)
