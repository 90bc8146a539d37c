"""A chat body is taken with its defaults, or refused with the return code and the path of its first fault."""

from typing import Any

import pytest

from hordechat.contract import chat
from hordechat.contract.chat import ChatSubmission, Message
from hordechat.contract.chat.submission import Sampling
from hordechat.contract.vocabulary import ReasoningEffort, Role
from hordechat.errors import ErrorCode, HordeError
from hordechat.http.refusals import body_of

USER = {"role": "user", "content": "Hello"}
BODY: dict[str, Any] = {"model": "demo/echo", "messages": [USER]}
TEXT = {"type": "text", "text": "a"}
INVALID = "Input payload validation failed"
ABSENT = object()


def body(**changes: object) -> dict[str, object]:
    return {key: value for key, value in {**BODY, **changes}.items() if value is not ABSENT}


def parse(**changes: object) -> ChatSubmission:
    return chat.parse(body(**changes))


def refuse(sent: dict[str, object]) -> HordeError:
    with pytest.raises(HordeError) as refused:
        chat.parse(sent)
    return refused.value


def refuse_message(message: object, *others: object) -> HordeError:
    return refuse(body(messages=[message, *others]))


def test_a_minimal_body_is_taken_with_every_default() -> None:
    submission = parse()

    assert submission.models == ("demo/echo",)
    assert submission.names_one_model
    assert submission.messages == (Message(role=Role.USER, content="Hello"),)
    assert submission.sampling == Sampling()
    assert submission.horde.model_dump() == {
        "only": None,
        "ignore": None,
        "trusted_workers": False,
        "validated_backends": False,
        "slow_workers": True,
        "max_context_length": None,
        "context_fit": "truncate_oldest",
        "conformance": "strict",
        "openai_guards": False,
        "include_reasoning": True,
        "availability_mode": "wait",
        "max_kudos": None,
        "dry_run": False,
        "operation_key": None,
    }


@pytest.mark.spec("REQ-01", "RFS-20", "RFS-24")
def test_takes_exactly_one_of_model_and_models() -> None:
    both = refuse(body(model="a", models=["a"]))
    neither = refuse(body(model=ABSENT))

    assert parse().models == ("demo/echo",)
    assert parse(model=ABSENT, models=["a", "b"]).models == ("a", "b")
    assert (both.code, both.message) == (
        ErrorCode.CHAT_REQUEST_CONFLICT,
        "'model' and 'models' cannot be sent together.",
    )
    assert (neither.code, neither.message) == (ErrorCode.BAD_REQUEST, "One of 'model' and 'models' is required.")


@pytest.mark.spec("REQ-02", "RFS-25")
@pytest.mark.parametrize("models", [[], [""], ["a", ""], ["a", "b", "a"], list("abcdef"), "a", [1], {}])
def test_refuses_a_list_of_models_outside_its_bounds(models: object) -> None:
    assert refuse(body(model=ABSENT, models=models)).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("REQ-02")
def test_takes_five_models() -> None:
    assert parse(model=ABSENT, models=list("abcde")).models == tuple("abcde")


@pytest.mark.spec("REQ-44")
@pytest.mark.parametrize("model", ["", 1, ["a"], "m" * 256, {}])
def test_refuses_a_model_that_is_no_name(model: object) -> None:
    assert refuse(body(model=model)).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("REQ-06", "REQ-07", "REQ-08", "REQ-09")
@pytest.mark.parametrize(
    ("sent", "max_length"),
    [
        ({}, 512),
        ({"max_tokens": None, "max_completion_tokens": None}, 512),
        ({"max_tokens": 16}, 16),
        ({"max_tokens": 16384}, 16384),
        ({"max_completion_tokens": 64}, 64),
        ({"max_tokens": None, "max_completion_tokens": 64}, 64),
        ({"max_tokens": 100, "max_completion_tokens": 100}, 100),
    ],
)
def test_the_length_comes_from_either_key(sent: dict[str, object], max_length: int) -> None:
    assert parse(**sent).max_length == max_length


@pytest.mark.spec("REQ-08", "REQ-32", "REQ-34", "REQ-35", "REQ-36", "REQ-40")
@pytest.mark.parametrize(
    ("key", "taken", "refused", "sentence"),
    [
        ("max_tokens", (16, 16384), 15, "Input should be greater than or equal to 16."),
        ("max_tokens", (16, 16384), 16385, "Input should be less than or equal to 16384."),
        ("max_completion_tokens", (16, 16384), 15, "Input should be greater than or equal to 16."),
        ("max_completion_tokens", (16, 16384), 16385, "Input should be less than or equal to 16384."),
        ("temperature", (0, 5), -0.01, "Input should be greater than or equal to 0."),
        ("temperature", (0, 5), 5.01, "Input should be less than or equal to 5."),
        ("top_p", (0.001, 1), 0.0009, "Input should be greater than or equal to 0.001."),
        ("top_p", (0.001, 1), 1.01, "Input should be less than or equal to 1."),
        ("frequency_penalty", (-2, 2), -2.01, "Input should be greater than or equal to -2."),
        ("frequency_penalty", (-2, 2), 2.01, "Input should be less than or equal to 2."),
        ("presence_penalty", (-2, 2), -2.01, "Input should be greater than or equal to -2."),
        ("presence_penalty", (-2, 2), 2.01, "Input should be less than or equal to 2."),
        ("seed", (-(2**63), 2**63 - 1), -(2**63) - 1, "Input should be greater than or equal to -9223372036854775808."),
        ("seed", (-(2**63), 2**63 - 1), 2**63, "Input should be less than or equal to 9223372036854775807."),
    ],
)
def test_a_number_outside_its_range_is_refused_and_never_clamped(
    key: str, taken: tuple[float, float], refused: float, sentence: str
) -> None:
    for value in taken:
        submission = parse(**{key: value})
        assert getattr(submission.sampling, key, submission.max_length) == value

    assert body_of(refuse(body(**{key: refused}))) == {
        "message": INVALID,
        "rc": "BadRequest",
        "errors": {key: sentence},
    }


@pytest.mark.spec("REQ-38", "RFS-21")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("max_tokens", "64"),
        ("max_tokens", 64.5),
        ("max_tokens", 512.0),
        ("max_tokens", True),
        ("temperature", "1"),
        ("temperature", True),
        ("top_p", False),
        ("seed", 1.0),
        ("seed", "1"),
        ("seed", float(2**64)),
        ("frequency_penalty", "0"),
        ("stream", "no"),
        ("stream", 1),
        ("parallel_tool_calls", 0),
        ("tools", {}),
        ("response_format", "json"),
        ("stop", 5),
        ("stop", {"a": "b"}),
        ("horde", []),
        ("horde", "x"),
        ("horde.dry_run", "false"),
        ("horde.slow_workers", 0),
        ("horde.trusted_workers", 1),
        ("horde.max_kudos", 1.0),
        ("horde.max_kudos", 0),
        ("horde.max_context_length", "2048"),
        ("horde.max_context_length", 0),
        ("horde.only", "a"),
        ("horde.only", []),
        ("horde.conformance", "lax"),
        ("horde.availability_mode", "never"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_path(path: str, value: object) -> None:
    key, _, option = path.partition(".")

    error = refuse(body(**{key: {option: value} if option else value}))

    assert error.code is ErrorCode.BAD_REQUEST
    assert list(body_of(error)["errors"]) == [path]  # type: ignore[call-overload] # a dict, by REQ-35


@pytest.mark.spec("REQ-38")
def test_a_key_of_fractions_takes_an_integer() -> None:
    assert parse(temperature=1, top_p=1).sampling.temperature == 1.0


@pytest.mark.spec("REQ-39", "REQ-51")
@pytest.mark.parametrize("key", sorted(set(chat.ChatBody.model_fields) - {"model", "messages", "reasoning_effort"}))
def test_null_is_the_same_as_leaving_a_key_out(key: str) -> None:
    assert parse(**{key: None}) == parse()


@pytest.mark.spec("REQ-51")
@pytest.mark.parametrize("horde", [[], "x", 1, True])
def test_refuses_options_that_are_no_object(horde: object) -> None:
    assert refuse(body(horde=horde)).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("REQ-17")
@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh"])
def test_takes_each_reasoning_effort(effort: str) -> None:
    assert parse(reasoning_effort=effort).sampling.reasoning_effort == ReasoningEffort(effort)


@pytest.mark.spec("REQ-21", "REQ-37")
@pytest.mark.parametrize("effort", [None, "", "maximal", "LOW", 1, True, ["low"], {}])
def test_refuses_any_other_reasoning_effort(effort: object) -> None:
    assert refuse(body(reasoning_effort=effort)).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("REQ-22", "REQ-42")
@pytest.mark.parametrize(
    ("stop", "sequence"), [("###", ("###",)), (["a", "b"], ("a", "b")), ([], ()), (list("abcdef"), tuple("abcdef"))]
)
def test_stop_becomes_a_list(stop: object, sequence: tuple[str, ...]) -> None:
    assert parse(stop=stop).sampling.stop_sequence == sequence


@pytest.mark.spec("REQ-42")
def test_refuses_a_stop_sequence_that_is_no_string() -> None:
    assert body_of(refuse(body(stop=["a", 5]))) == {
        "message": INVALID,
        "rc": "BadRequest",
        "errors": {"stop[1]": "Input should be a valid string."},
    }


@pytest.mark.spec("REQ-41")
def test_stop_keeps_the_limits_of_text_requests() -> None:
    different = [f"{number:03}" for number in range(129)]

    assert len(parse(stop=different[:128] * 2).sampling.stop_sequence) == 256
    assert refuse(body(stop=different)).code is ErrorCode.TOO_MANY_STOP_SEQUENCES
    assert parse(stop=["a" * 1000, "b" * 1000]).sampling.stop_sequence[1] == "b" * 1000
    assert refuse(body(stop=["a" * 1000, "b" * 1001])).code is ErrorCode.EXCESSIVE_STOP_SEQUENCE


@pytest.mark.spec("RFS-01", "RFS-02", "RFS-03", "RFS-27", "RFS-33")
@pytest.mark.parametrize(
    "key", ["logprobs", "top_logprobs", "logit_bias", "modalities", "audio", "prediction", "prompt", "modèle", ""]
)
@pytest.mark.parametrize("value", [None, True, {"a": 1}])
def test_refuses_a_key_outside_the_contract_whatever_its_value(key: str, value: object) -> None:
    error = refuse(body(**{key: value}))

    assert error.code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER
    assert error.message == f"{key} is not supported on chat requests."


@pytest.mark.spec("RFS-04", "RFS-06", "RFS-08", "RFS-09", "RFS-10", "RFS-27")
@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({**USER, "weight": None}, "messages[0].weight"),
        ({**USER, "tool_calls": []}, "messages[0].tool_calls"),
        ({**USER, "role": "function"}, "messages[0].role=function"),
        ({**USER, "role": "x" * 100}, "messages[0].role=" + "x" * 64),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_audio"}]},
            "messages[0].content[1].type=input_audio",
        ),
        ({"role": "assistant", "content": [{"type": "image_url"}]}, "messages[0].content[0].type=image_url"),
        ({"role": "system", "content": [{"type": "image_url"}]}, "messages[0].content[0].type=image_url"),
        ({"role": "user", "content": [{"type": "text", "text": "a", "b": 1}]}, "messages[0].content[0].b"),
    ],
)
def test_refuses_what_a_message_cannot_hold_with_its_path(message: object, named: str) -> None:
    error = refuse_message(message, USER)

    assert error.code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER
    assert error.message == f"{named} is not supported on chat requests."


@pytest.mark.spec("RFS-11", "RFS-27")
def test_refuses_an_unknown_option_with_its_path() -> None:
    error = refuse(body(horde={"models": None}))

    assert (error.code, error.message) == (
        ErrorCode.UNSUPPORTED_CHAT_PARAMETER,
        "horde.models is not supported on chat requests.",
    )


@pytest.mark.spec("RFS-12", "RFS-32")
def test_takes_one_choice_alone() -> None:
    assert parse(n=1) == parse()
    for number in (2, 0, -1):
        assert refuse(body(n=number)).message == f"n={number} is not supported on chat requests."
    for value in ("2", 1.5, 1.0, True):
        assert refuse(body(n=value)).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("RFS-13", "RFS-14", "RFS-28")
def test_takes_1024_messages_and_no_more() -> None:
    error = refuse(body(messages=[USER] * 1025))

    assert len(parse(messages=[USER] * 1024).messages) == 1024
    assert (error.code, error.message) == (
        ErrorCode.UNSUPPORTED_CHAT_PARAMETER,
        "messages holds more than 1024 messages.",
    )


@pytest.mark.spec("RFS-15", "RFS-17", "RFS-28")
def test_takes_a_mebibyte_of_utf8_text_and_no_more() -> None:
    half = "é" * (256 * 1024)
    messages: list[object] = [
        {"role": "user", "content": half},
        {"role": "user", "content": [{"type": "text", "text": half}]},
    ]

    error = refuse(body(messages=[*messages, {"role": "user", "content": "a"}]))

    assert len(parse(messages=messages).messages) == 2
    assert (error.code, error.message) == (
        ErrorCode.UNSUPPORTED_CHAT_PARAMETER,
        "messages holds more than 1048576 bytes of text.",
    )


@pytest.mark.spec("RFS-18")
def test_refuses_two_lengths() -> None:
    error = refuse(body(max_tokens=64, max_completion_tokens=65))

    assert (error.code, error.message) == (
        ErrorCode.CHAT_REQUEST_CONFLICT,
        "'max_tokens' and 'max_completion_tokens' differ.",
    )


@pytest.mark.spec("RFS-19")
def test_refuses_to_name_workers_in_two_ways() -> None:
    error = refuse(body(horde={"only": ["a"], "ignore": ["b"]}))

    assert (error.code, error.message) == (
        ErrorCode.CHAT_REQUEST_CONFLICT,
        "'horde.only' and 'horde.ignore' cannot be sent together.",
    )


@pytest.mark.spec("RFS-22", "RFS-23")
@pytest.mark.parametrize(("option", "value"), [("context_fit", "ignore"), ("operation_key", "x"), ("operation_key", 1)])
def test_refuses_an_option_outside_its_values(option: str, value: object) -> None:
    error = refuse(body(horde={option: value}))

    assert error.code is ErrorCode.BAD_REQUEST
    assert list(body_of(error)["errors"]) == [f"horde.{option}"]  # type: ignore[call-overload] # a dict, by REQ-35


@pytest.mark.spec("RFS-26", "RFS-30")
@pytest.mark.parametrize("messages", [ABSENT, None, [], {}, "Hello", [USER, "Hello"], [USER, None], [[USER]]])
def test_refuses_messages_that_are_no_list_of_objects(messages: object) -> None:
    assert refuse(body(messages=messages)).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("RFS-31", "REQ-46", "REQ-48")
@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"content": "a"}, "'messages[1].role' has to be a string."),
        ({"role": None, "content": "a"}, "'messages[1].role' has to be a string."),
        ({"role": ["user"], "content": "a"}, "'messages[1].role' has to be a string."),
        ({"role": "user"}, "'messages[1].content' has to be a string or a list of parts."),
        ({"role": "user", "content": None}, "'messages[1].content' has to be a string or a list of parts."),
        ({"role": "user", "content": 1}, "'messages[1].content' has to be a string or a list of parts."),
        ({"role": "user", "content": []}, "'messages[1].content' has to be a string or a list of parts."),
        ({"role": "user", "content": ["a"]}, "'messages[1].content[0]' has to be an object."),
        ({"role": "user", "content": [{"text": "a"}]}, "'messages[1].content[0].type' has to be a string."),
        ({"role": "user", "content": [{"type": "text"}]}, "'messages[1].content[0].text' has to be a string."),
        (
            {"role": "user", "content": [{"type": "text", "text": 1}]},
            "'messages[1].content[0].text' has to be a string.",
        ),
        ({**USER, "name": ""}, "'messages[1].name' has to be a string of 1 to 64 characters."),
        ({**USER, "name": "n" * 65}, "'messages[1].name' has to be a string of 1 to 64 characters."),
        ({**USER, "name": None}, "'messages[1].name' has to be a string of 1 to 64 characters."),
    ],
)
def test_refuses_a_broken_message_with_its_path(message: object, complaint: str) -> None:
    error = refuse_message(USER, message)

    assert (error.code, error.message) == (ErrorCode.BAD_REQUEST, complaint)


@pytest.mark.spec("REQ-45", "REQ-46", "REQ-49")
def test_keeps_messages_as_they_were_sent() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": ""}]
    sent = [
        {"role": "system", "content": "", "name": "s"},
        {"role": "user", "content": parts, "name": "n" * 64},
        {"role": "assistant", "content": "b", "name": "a"},
    ]

    assert [message.as_json() for message in parse(messages=sent).messages] == sent


def test_a_developer_becomes_system_in_its_place() -> None:
    messages = parse(
        messages=[USER, {"role": "developer", "content": "a"}, {"role": "system", "content": "b"}]
    ).messages

    assert [message.role for message in messages] == [Role.USER, Role.SYSTEM, Role.SYSTEM]


@pytest.mark.parametrize("key", ["stream_options", "user", "metadata"])
@pytest.mark.parametrize("value", [1, "a", [], {"a": {"b": [1]}}, False])
def test_keys_without_effect_take_anything(key: str, value: object) -> None:
    assert parse(**{key: value}).models == ("demo/echo",)


BROKEN_MESSAGE = {"role": "user", "content": None}


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"logprobs": 1, "temperature": "x"}, ErrorCode.UNSUPPORTED_CHAT_PARAMETER),
        ({"temperature": "x", "horde": {"models": 1}}, ErrorCode.BAD_REQUEST),
        ({"horde": {"dry_run": 1, "models": 1}}, ErrorCode.BAD_REQUEST),
        ({"horde": {"models": 1}, "messages": []}, ErrorCode.UNSUPPORTED_CHAT_PARAMETER),
        ({"messages": [BROKEN_MESSAGE] * 1025}, ErrorCode.UNSUPPORTED_CHAT_PARAMETER),
        ({"messages": [BROKEN_MESSAGE, {"role": "function"}]}, ErrorCode.BAD_REQUEST),
        ({"messages": [{"role": "function"}, BROKEN_MESSAGE]}, ErrorCode.UNSUPPORTED_CHAT_PARAMETER),
        ({"messages": [{"role": "user", "content": "a" * 1048577}, BROKEN_MESSAGE]}, ErrorCode.BAD_REQUEST),
        ({"messages": [BROKEN_MESSAGE], "max_tokens": 64, "max_completion_tokens": 65}, ErrorCode.BAD_REQUEST),
        (
            {"messages": [{"role": "user", "content": "a" * 1048577}], "models": ["a"]},
            ErrorCode.UNSUPPORTED_CHAT_PARAMETER,
        ),
    ],
)
def test_of_several_faults_the_first_of_the_documented_order_is_named(sent: dict[str, object], code: ErrorCode) -> None:
    assert refuse(body(**sent)).code is code


def test_deeply_nested_values_are_judged_without_recursion() -> None:
    nested: object = 1
    for _ in range(1000):
        nested = [nested]

    parse(metadata=nested, user=nested)
    for key in set(chat.ChatBody.model_fields) - {
        "metadata",
        "user",
        "stream_options",
        "tools",
        "tool_choice",
        "response_format",
    }:
        assert refuse(body(**{key: nested})).code is ErrorCode.BAD_REQUEST
    assert refuse(body(n=1, nested=nested)).code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER
    assert refuse_message({"role": "user", "content": nested}).code is ErrorCode.BAD_REQUEST


MANY = 100_000


@pytest.mark.parametrize(
    "sent",
    [
        {"stop": [1] * MANY},
        {"horde": {"only": [None] * MANY}},
        {"horde": {"ignore": [[]] * MANY}},
        {"horde": {f"key{number}": 1 for number in range(MANY)}},
        {"model": ABSENT, "models": [""] * MANY},
        {f"key{number}": 1 for number in range(MANY)},
        {"messages": [1] * MANY},
        {"messages": [{"role": "user", "content": [1] * MANY}]},
    ],
    ids=["stop", "only", "ignore", "options", "models", "keys", "messages", "parts"],
)
def test_a_hundred_thousand_faults_cost_no_more_than_the_first(sent: dict[str, object]) -> None:
    assert len(repr(body_of(refuse(body(**sent))))) < 300
