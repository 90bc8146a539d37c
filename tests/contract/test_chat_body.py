"""The top-level keys of a chat body are taken with their defaults, or refused with their path."""

import pytest

from hordechat.contract import chat
from hordechat.contract.chat import Message
from hordechat.contract.chat.submission import Sampling
from hordechat.contract.sampling import check_stop_sequences
from hordechat.contract.vocabulary import Capability, ReasoningEffort, Role
from hordechat.errors import ErrorCode, HordeError
from hordechat.http.refusals import body_of
from tests.contract.bodies import ABSENT, INVALID, bad, conflict, parse, refuse, said, tool, unsupported


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
    both = refuse(model="a", models=["a"])
    neither = refuse(model=ABSENT)

    assert parse().models == ("demo/echo",)
    assert parse(model=ABSENT, models=["a", "b"]).models == ("a", "b")
    assert said(both) == conflict("'model' and 'models' cannot be sent together.")
    assert said(neither) == bad("One of 'model' and 'models' is required.")


@pytest.mark.spec("REQ-02", "RFS-25")
@pytest.mark.parametrize("models", [[], [""], ["a", ""], ["a", "b", "a"], list("abcdef"), "a", [1], {}])
def test_refuses_a_list_of_models_outside_its_bounds(models: object) -> None:
    assert refuse(model=ABSENT, models=models).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("REQ-02")
def test_takes_five_models() -> None:
    assert parse(model=ABSENT, models=list("abcde")).models == tuple("abcde")


@pytest.mark.spec("REQ-44")
@pytest.mark.parametrize("model", ["", 1, ["a"], "m" * 256, {}])
def test_refuses_a_model_that_is_no_name(model: object) -> None:
    assert refuse(model=model).code is ErrorCode.BAD_REQUEST


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


@pytest.mark.spec("RFS-18", "RFS-29")
def test_refuses_two_lengths_that_differ() -> None:
    error = refuse(max_tokens=64, max_completion_tokens=65)

    assert said(error) == conflict("'max_tokens' and 'max_completion_tokens' differ.")


@pytest.mark.spec("REQ-08", "REQ-31", "REQ-32", "REQ-34", "REQ-35", "REQ-36", "REQ-40")
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

    assert body_of(refuse(**{key: refused})) == {
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

    error = refuse(**{key: {option: value} if option else value})

    assert error.code is ErrorCode.BAD_REQUEST
    assert list(body_of(error)["errors"]) == [path]  # type: ignore[call-overload] # a dict, by REQ-35


@pytest.mark.spec("REQ-38")
def test_a_key_of_fractions_takes_an_integer() -> None:
    assert parse(temperature=1, top_p=1).sampling.temperature == 1.0


@pytest.mark.spec("REQ-11", "REQ-12", "REQ-50")
def test_sampling_keys_are_kept_together() -> None:
    sent = {
        "temperature": 0.5,
        "top_p": 0.25,
        "frequency_penalty": -2.0,
        "presence_penalty": 2.0,
        "seed": 0,
        "reasoning_effort": "none",
    }

    assert parse(**sent).sampling == Sampling(
        temperature=0.5,
        top_p=0.25,
        frequency_penalty=-2.0,
        presence_penalty=2.0,
        seed=0,
        reasoning_effort=ReasoningEffort.NONE,
    )


@pytest.mark.spec("REQ-23")
@pytest.mark.parametrize(("stream", "is_streamed"), [(True, True), (False, False), (None, False), (ABSENT, False)])
def test_a_stream_is_wanted_when_it_is_asked_for(stream: object, is_streamed: bool) -> None:
    assert parse(stream=stream).is_streamed is is_streamed


@pytest.mark.spec("REQ-25")
def test_tools_and_format_are_kept() -> None:
    sent = {
        "tools": [tool("look", parameters={"type": "object"})],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "response_format": {"type": "json_object"},
    }

    submission = parse(**sent)

    assert [each.document for each in submission.tools] == sent["tools"]
    assert submission.tool_choice is not None
    assert submission.tool_choice.as_json() == "auto"
    assert submission.parallel_tool_calls is False
    assert submission.response_format is not None
    assert submission.response_format.document == {"type": "json_object"}


@pytest.mark.spec("REQ-39", "REQ-51")
@pytest.mark.parametrize("key", sorted(set(chat.ChatBody.model_fields) - {"model", "messages", "reasoning_effort"}))
def test_null_is_the_same_as_leaving_a_key_out(key: str) -> None:
    assert parse(**{key: None}) == parse()


@pytest.mark.spec("REQ-51")
@pytest.mark.parametrize("horde", [[], "x", 1, True])
def test_refuses_options_that_are_no_object(horde: object) -> None:
    assert refuse(horde=horde).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("REQ-17", "REQ-19")
@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh"])
def test_takes_each_reasoning_effort(effort: str) -> None:
    assert parse(reasoning_effort=effort).sampling.reasoning_effort == ReasoningEffort(effort)
    assert parse().sampling.reasoning_effort is None


@pytest.mark.spec("REQ-21", "REQ-37")
@pytest.mark.parametrize("effort", [None, "", "maximal", "LOW", 1, True, ["low"], {}])
def test_refuses_any_other_reasoning_effort(effort: object) -> None:
    assert refuse(reasoning_effort=effort).code is ErrorCode.BAD_REQUEST


@pytest.mark.spec("REQ-22", "REQ-42")
@pytest.mark.parametrize(
    ("stop", "sequence"), [("###", ("###",)), (["a", "b"], ("a", "b")), ([], ()), (list("abcdef"), tuple("abcdef"))]
)
def test_stop_becomes_a_list(stop: object, sequence: tuple[str, ...]) -> None:
    assert parse(stop=stop).sampling.stop_sequence == sequence


@pytest.mark.spec("REQ-42")
def test_refuses_a_stop_sequence_that_is_no_string() -> None:
    assert body_of(refuse(stop=["a", 5])) == {
        "message": INVALID,
        "rc": "BadRequest",
        "errors": {"stop[1]": "Input should be a valid string."},
    }


@pytest.mark.spec("REQ-41")
@pytest.mark.parametrize(
    ("stop", "code"),
    [
        ([f"{number % 128:03}" for number in range(256)], None),
        ([f"{number:03}" for number in range(129)], ErrorCode.TOO_MANY_STOP_SEQUENCES),
        (["a" * 1000, "b" * 1000], None),
        (["a" * 1000, "b" * 1001], ErrorCode.EXCESSIVE_STOP_SEQUENCE),
    ],
)
def test_stop_keeps_the_limits_of_text_requests(stop: list[str], code: ErrorCode | None) -> None:
    sequences = parse(stop=stop).sampling.stop_sequence

    assert list(sequences) == stop
    if code is None:
        check_stop_sequences(sequences, path="stop")
        return
    with pytest.raises(HordeError) as refused:
        check_stop_sequences(sequences, path="stop")
    assert refused.value.code is code


@pytest.mark.spec("RFS-12", "RFS-27", "RFS-32")
@pytest.mark.parametrize("number", [2, 0, -1, 2**63])
def test_refuses_more_or_less_than_one_choice(number: int) -> None:
    assert said(refuse(n=number)) == unsupported(f"n={number}")


@pytest.mark.spec("RFS-32")
@pytest.mark.parametrize("number", ["2", 1.5, 1.0, True, []])
def test_refuses_a_count_of_choices_that_is_no_integer(number: object) -> None:
    assert refuse(n=number).code is ErrorCode.BAD_REQUEST


def test_takes_one_choice() -> None:
    assert parse(n=1) == parse()


@pytest.mark.spec("REQ-24", "REQ-43")
@pytest.mark.parametrize("key", ["stream_options", "user", "metadata"])
@pytest.mark.parametrize("value", [1, "a", [], {"a": {"b": [1e300]}}, False])
def test_keys_without_effect_take_anything_and_leave_nothing(key: str, value: object) -> None:
    assert parse(**{key: value}) == parse()
    assert chat.dump(parse(**{key: value})) == chat.dump(parse())


@pytest.mark.spec("REQ-30")
def test_no_capability_speaks_of_developers() -> None:
    assert [value for value in Capability if "developer" in value] == []


def test_a_request_of_either_spelling_of_one_model_names_it() -> None:
    assert parse(model=ABSENT, models=["a"]).models == parse(model="a").models
    assert not parse(model=ABSENT, models=["a"]).names_one_model
