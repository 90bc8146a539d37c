"""A worker's submit is told apart by family, and a chat reply is taken with its NULs replaced, or refused by field."""

from typing import Any

import pytest

from hordechat.contract import submit
from hordechat.contract.submit import ChatReply
from hordechat.contract.vocabulary import FinishReason, GenerationState
from hordechat.errors import ErrorCode, HordeError
from hordechat.http.refusals import body_of

MESSAGE: dict[str, Any] = {"role": "assistant", "content": "Hello yourself"}
REPLY: dict[str, Any] = {"id": "x", "message": MESSAGE, "finish_reason": "stop", "model_id": "demo/echo"}
CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ABSENT = object()


def read(**changes: object) -> ChatReply:
    body = {key: value for key, value in {**REPLY, **changes}.items() if value is not ABSENT}
    return submit.read_chat_reply(submit.parse(body))


def refuse(**changes: object) -> HordeError:
    with pytest.raises(HordeError) as refused:
        read(**changes)
    return refused.value


def message(**changes: object) -> dict[str, object]:
    return {key: value for key, value in {**MESSAGE, **changes}.items() if value is not ABSENT}


@pytest.mark.spec("SUB-16")
def test_a_minimal_reply_is_taken() -> None:
    assert read() == ChatReply(
        tool_calls=(),
        content="Hello yourself",
        reasoning_content=None,
        finish_reason=FinishReason.STOP,
        native_finish_reason=None,
        prompt_tokens=None,
        completion_tokens=None,
        reasoning_tokens=None,
        model_id="demo/echo",
        state=GenerationState.OK,
    )


def called(**changes: object) -> dict[str, object]:
    return {**CALL, "function": {**CALL["function"], **changes}}


def without(sent: dict[str, object], key: str) -> dict[str, object]:
    return {kept: value for kept, value in sent.items() if kept != key}


@pytest.mark.spec("SUB-18", "SUB-19")
@pytest.mark.parametrize(
    ("body", "is_chat"),
    [
        ({"message": None}, True),
        ({"model_id": "a"}, True),
        ({"finish_reason": "stop"}, True),
        ({"fault_reason": "a"}, True),
        ({"model_id": "a", "generation": "b"}, True),
        ({"generation": "b", "seed": 1, "gen_metadata": []}, False),
        ({"generation": "b", "prompt_tokens": 1, "native_finish_reason": "a"}, False),
    ],
)
def test_a_body_is_a_chat_submit_by_any_of_four_keys(body: dict[str, object], is_chat: bool) -> None:
    assert submit.parse({"id": "x", **body}).is_chat is is_chat


@pytest.mark.spec("SUB-19")
@pytest.mark.parametrize("body", [{}, {"generation": None}, {"prompt_tokens": 1}, {"state": "faulted"}])
def test_a_text_submit_needs_its_generation(body: dict[str, object]) -> None:
    with pytest.raises(HordeError) as refused:
        submit.parse({"id": "x", **body})

    assert body_of(refused.value) == {
        "message": "Input payload validation failed",
        "rc": "BadRequest",
        "errors": {"generation": "Field required."},
    }


@pytest.mark.spec("SUB-16")
def test_takes_four_states_and_no_other() -> None:
    for state in ("ok", "censored", "csam", "faulted"):
        assert submit.parse({**REPLY, "state": state}).is_fault is (state == "faulted")
    for other in ("OK", "", None, 1, ["ok"]):
        assert refuse(state=other).code is ErrorCode.BAD_REQUEST
    assert read(state="censored").state is GenerationState.CENSORED


@pytest.mark.parametrize("sent", [ABSENT, None, 1, ["x"]])
def test_needs_the_generations_id(sent: object) -> None:
    assert list(body_of(refuse(id=sent))["errors"]) == ["id"]  # type: ignore[call-overload] # a dict, by REQ-35


@pytest.mark.spec("SUB-03", "SUB-06")
def test_keeps_reasoning_apart_from_a_content_that_may_be_empty() -> None:
    reply = read(message=message(content="", reasoning_content="Hmm"), finish_reason="length")

    assert (reply.content, reply.reasoning_content, reply.characters) == ("", "Hmm", 3)
    assert reply.message == {"role": "assistant", "content": "", "reasoning_content": "Hmm"}


def test_keeps_no_unknown_key_of_a_message() -> None:
    assert read(message=message(annotations=[], refusal=None, tool_calls=None)).message == MESSAGE


@pytest.mark.spec("SUB-20")
@pytest.mark.parametrize(
    ("sent", "path"),
    [
        (ABSENT, "message"),
        (None, "message"),
        ("Hello", "message"),
        ([], "message"),
        ({}, "message.role"),
        (message(role=ABSENT), "message.role"),
        (message(role="user"), "message.role"),
        (message(content=ABSENT), "message.content"),
        (message(content=None), "message.content"),
        (message(content=["a"]), "message.content"),
        (message(reasoning_content=1), "message.reasoning_content"),
        (message(reasoning_content="é" * (512 * 1024) + "a"), "message.reasoning_content"),
        (message(tool_calls=[]), "message.tool_calls"),
        (message(tool_calls="none"), "message.tool_calls"),
    ],
)
def test_refuses_a_broken_message_with_its_path(sent: object, path: str) -> None:
    error = refuse(message=sent)

    assert error.code is ErrorCode.CHAT_SUBMIT_INVALID
    assert error.message.startswith(f"The reply is invalid: '{path}': ")


@pytest.mark.spec("SUB-07", "SUB-21")
def test_takes_three_finish_reasons_without_calls() -> None:
    for reason in ("stop", "length", "content_filter"):
        assert read(finish_reason=reason).finish_reason == reason
    for sent in (ABSENT, None, "", "eos", 1, ["stop"], "tool_calls"):
        error = refuse(finish_reason=sent)
        assert error.code is ErrorCode.CHAT_SUBMIT_INVALID
        assert "'finish_reason': " in error.message


@pytest.mark.spec("SUB-08")
@pytest.mark.parametrize("calls", [ABSENT, None, []])
@pytest.mark.parametrize("content", ["", "Hello yourself"])
def test_ends_with_calls_only_where_there_are_some(calls: object, content: str) -> None:
    error = refuse(message=message(content=content, tool_calls=calls), finish_reason="tool_calls")

    assert error.code is ErrorCode.CHAT_SUBMIT_INVALID
    assert read(message=message(content=content, tool_calls=[CALL]), finish_reason="tool_calls").finish_reason == (
        "tool_calls"
    )


@pytest.mark.spec("SUB-09")
@pytest.mark.parametrize("reason", FinishReason)
def test_takes_any_finish_reason_beside_calls(reason: FinishReason) -> None:
    assert read(message=message(tool_calls=[CALL]), finish_reason=reason.value).finish_reason is reason


@pytest.mark.spec("SUB-04", "SUB-05", "SUB-47", "SUB-48")
@pytest.mark.parametrize(
    "calls",
    [
        pytest.param([CALL], id="one"),
        pytest.param([{**CALL, "id": f"call_{number}"} for number in range(128)], id="as many as there may be"),
        pytest.param([{**CALL, "id": "é" * 256}], id="a long id"),
        pytest.param([{**CALL, "id": " "}], id="an id of a space"),
        pytest.param([CALL, CALL], id="an id sent twice, which is judged later"),
        pytest.param([called(arguments="")], id="no arguments"),
        pytest.param([called(arguments="no JSON {")], id="arguments that are no JSON"),
        pytest.param([called(name="")], id="a name nobody has"),
    ],
)
@pytest.mark.parametrize("content", [None, "", "Wait."])
def test_takes_calls_as_they_were_minted(calls: list[dict[str, Any]], content: str | None) -> None:
    assert read(message=message(content=content, tool_calls=calls)).message == {
        "role": "assistant",
        "content": content,
        "tool_calls": calls,
    }


@pytest.mark.parametrize(
    ("calls", "path"),
    [
        pytest.param([], "", marks=pytest.mark.spec("SUB-47"), id="an empty list"),
        pytest.param([CALL] * 129, "", marks=pytest.mark.spec("SUB-05"), id="one too many"),
        pytest.param([CALL, "call"], "[1]", id="no object"),
        pytest.param([{**CALL, "id": ""}], "[0].id", id="an empty id"),
        pytest.param([{**CALL, "id": "é" * 257}], "[0].id", id="an id that is too long"),
        pytest.param([{**CALL, "id": 1}], "[0].id", id="an id that is no string"),
        pytest.param([without(CALL, "id")], "[0].id", id="no id"),
        pytest.param([{**CALL, "type": "custom"}], "[0].type", id="another type"),
        pytest.param([without(CALL, "type")], "[0].type", id="no type"),
        pytest.param([{**CALL, "function": None}], "[0].function", id="no function"),
        pytest.param([called(name=None)], "[0].function.name", id="a name that is no string"),
        pytest.param([called(arguments={})], "[0].function.arguments", id="arguments that are no string"),
        pytest.param([{**CALL, "function": {"name": "look"}}], "[0].function.arguments", id="arguments left out"),
    ],
)
@pytest.mark.spec("SUB-47")
def test_refuses_broken_calls_with_their_path(calls: list[object], path: str) -> None:
    error = refuse(message=message(tool_calls=calls))

    assert error.code is ErrorCode.CHAT_SUBMIT_INVALID
    assert error.message.startswith(f"The reply is invalid: 'message.tool_calls{path}': ")


@pytest.mark.spec("SUB-47")
def test_keeps_no_unknown_key_of_a_call() -> None:
    sent = {**CALL, "index": 0, "function": {**CALL["function"], "parsed": {}}}

    assert read(message=message(tool_calls=[sent], refusal="no")).message == {**MESSAGE, "tool_calls": [CALL]}
    assert read(message=message(tool_calls=None)).message == MESSAGE


@pytest.mark.spec("SUB-48")
@pytest.mark.parametrize("role", ["user", "system", "tool", "Assistant", "", None, 1, ABSENT])
def test_speaks_as_the_assistant_alone(role: object) -> None:
    error = refuse(message=message(role=role))

    assert error.code is ErrorCode.CHAT_SUBMIT_INVALID
    assert error.message.startswith("The reply is invalid: 'message.role': ")


@pytest.mark.spec("SUB-35")
def test_replaces_nul_characters_in_every_string_of_a_call() -> None:
    sent = {"id": "\0a", "type": "function", "function": {"name": "lo\0k", "arguments": "{\0}"}}

    assert read(message=message(content="\0", tool_calls=[sent], reasoning_content="\0")).message == {
        "role": "assistant",
        "content": "\ufffd",
        "reasoning_content": "\ufffd",
        "tool_calls": [
            {"id": "\ufffda", "type": "function", "function": {"name": "lo\ufffdk", "arguments": "{\ufffd}"}}
        ],
    }


@pytest.mark.spec("SUB-10", "SUB-46")
def test_a_native_finish_reason_has_32_characters_at_most() -> None:
    assert read().native_finish_reason is None
    assert read(native_finish_reason="é" * 32).native_finish_reason == "é" * 32
    for sent in ("e" * 33, 1, ["eos"]):
        assert refuse(native_finish_reason=sent).code is ErrorCode.CHAT_SUBMIT_INVALID


@pytest.mark.spec("SUB-46")
@pytest.mark.parametrize(
    "count",
    [
        pytest.param("prompt_tokens", marks=pytest.mark.spec("SUB-11")),
        pytest.param("completion_tokens", marks=pytest.mark.spec("SUB-12")),
        pytest.param("reasoning_tokens", marks=pytest.mark.spec("SUB-13")),
    ],
)
def test_a_count_is_an_integer_up_to_ten_million(count: str) -> None:
    for sent in (0, 10_000_000):
        assert getattr(read(**{count: sent}), count) == sent
    assert getattr(read(**{count: None}), count) is None
    assert getattr(read(), count) is None
    for refused in (-1, 10_000_001, 1.0, "1", True, [1]):
        error = refuse(**{count: refused})
        assert error.code is ErrorCode.CHAT_SUBMIT_INVALID
        assert f"'{count}': " in error.message


@pytest.mark.spec("SUB-15")
@pytest.mark.parametrize("sent", [ABSENT, None, 1, ["demo/echo"]])
def test_a_reply_names_its_model(sent: object) -> None:
    error = refuse(model_id=sent)

    assert error.code is ErrorCode.CHAT_SUBMIT_INVALID
    assert "'model_id': " in error.message


@pytest.mark.spec("SUB-22", "SUB-43")
def test_refuses_a_generation_as_the_reply_to_a_chat_job() -> None:
    for changes in ({"generation": ""}, {"generation": "a", "message": ABSENT}):
        error = refuse(**changes)
        assert (error.code, error.message) == (
            ErrorCode.CHAT_SUBMIT_INVALID,
            "A chat job's reply carries 'message' and not 'generation'.",
        )


@pytest.mark.spec("SUB-40")
def test_replaces_nul_characters_before_it_counts() -> None:
    reply = read(message=message(content="a\0b", reasoning_content="\0\0"), native_finish_reason="\0eos")

    assert reply.message == {"role": "assistant", "content": "a\ufffdb", "reasoning_content": "\ufffd\ufffd"}
    assert (reply.native_finish_reason, reply.characters) == ("\ufffdeos", 5)


def test_names_every_fault_of_a_reply() -> None:
    error = refuse(message=message(content=1), finish_reason="eos", prompt_tokens=-1, model_id=ABSENT)

    assert error.message == (
        "The reply is invalid: 'message.content': Input should be a valid string; "
        "'finish_reason': Input should be 'stop', 'length', 'content_filter' or 'tool_calls'; "
        "'prompt_tokens': Input should be greater than or equal to 0; 'model_id': Field required."
    )


@pytest.mark.parametrize(
    "sent", ["Hello", message(tool_calls=["look"]), message(tool_calls=[{**CALL, "function": "look"}])]
)
def test_names_no_class_of_ours(sent: object) -> None:
    assert refuse(message=sent).message.endswith(": Input should be a valid dictionary.")


def test_deeply_nested_values_are_judged_without_recursion() -> None:
    nested: object = 1
    for _ in range(1000):
        nested = [nested]

    for key in set(submit.SubmitBody.model_fields) - {"fault_reason", "gen_metadata"}:
        assert refuse(**{key: nested}).code in {ErrorCode.BAD_REQUEST, ErrorCode.CHAT_SUBMIT_INVALID}
    assert read(message=message(more=nested), more=nested, fault_reason=nested).message == MESSAGE
