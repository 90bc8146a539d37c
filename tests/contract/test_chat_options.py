"""The `horde` object: each option with its default, its values, and what null means."""

from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from hordechat.contract.chat import ChatHordeOptions
from hordechat.errors import ErrorCode
from hordechat.http.refusals import body_of
from tests.contract.bodies import conflict, parse, refuse, said, unsupported

KEY = "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"

TAKEN = [
    pytest.param("only", ["a"], None, marks=pytest.mark.spec("HOP-35")),
    pytest.param("ignore", ["a", "a"], None, marks=pytest.mark.spec("HOP-35")),
    pytest.param("trusted_workers", True, False, marks=pytest.mark.spec("HOP-04")),
    pytest.param("validated_backends", True, False, marks=pytest.mark.spec("HOP-04")),
    pytest.param("slow_workers", False, True, marks=pytest.mark.spec("HOP-04")),
    pytest.param("max_context_length", 80, None, marks=pytest.mark.spec("HOP-05", "HOP-37")),
    pytest.param("max_context_length", 1_048_576, None, marks=pytest.mark.spec("HOP-05", "HOP-37")),
    pytest.param("context_fit", "grow", "truncate_oldest", marks=pytest.mark.spec("HOP-06")),
    pytest.param("context_fit", "reject", "truncate_oldest", marks=pytest.mark.spec("HOP-06")),
    pytest.param("context_fit", "truncate_oldest", "truncate_oldest", marks=pytest.mark.spec("HOP-06")),
    pytest.param("conformance", "strict", "strict", marks=pytest.mark.spec("HOP-07")),
    pytest.param("conformance", "best_effort", "strict", marks=pytest.mark.spec("HOP-07")),
    pytest.param("openai_guards", True, False, marks=pytest.mark.spec("HOP-11")),
    pytest.param("include_reasoning", False, True, marks=pytest.mark.spec("HOP-16")),
    pytest.param("availability_mode", "fail_fast", "wait", marks=pytest.mark.spec("HOP-18")),
    pytest.param("availability_mode", "wait", "wait", marks=pytest.mark.spec("HOP-18")),
    pytest.param("max_kudos", 1, None, marks=pytest.mark.spec("HOP-21")),
    pytest.param("dry_run", True, False, marks=pytest.mark.spec("HOP-30")),
]


@pytest.mark.parametrize(("option", "value", "default"), TAKEN)
def test_an_option_is_taken_and_has_its_default(option: str, value: object, default: object) -> None:
    assert getattr(parse(horde={option: value}).horde, option) == value
    assert getattr(parse(horde={}).horde, option) == default
    assert getattr(parse().horde, option) == default


@pytest.mark.spec("HOP-31")
@pytest.mark.parametrize("spelling", [KEY, KEY.upper(), KEY.replace("-", "")])
def test_an_operation_key_is_a_uuid_however_spelled(spelling: str) -> None:
    assert parse(horde={"operation_key": spelling}).horde.operation_key == UUID(KEY)
    assert parse().horde.operation_key is None


NO_UUIDS: tuple[object, ...] = ("x", "", 1, KEY + "0", [])
NO_FLAGS: tuple[object, ...] = ("false", 0, 1, [])

REFUSED = [
    *[pytest.param(option, [], marks=pytest.mark.spec("HOP-35")) for option in ("only", "ignore")],
    *[pytest.param(option, ["a", 1], marks=pytest.mark.spec("HOP-35")) for option in ("only", "ignore")],
    *[pytest.param(option, [None], marks=pytest.mark.spec("HOP-35")) for option in ("only", "ignore")],
    *[pytest.param(option, "a", marks=pytest.mark.spec("HOP-35")) for option in ("only", "ignore")],
    *[
        pytest.param(option, value, marks=pytest.mark.spec("HOP-36", "HOP-05", "HOP-21"))
        for option in ("max_context_length", "max_kudos")
        for value in (0, -1, 2048.0, 80.5, "2048", True, float(2**64))
    ],
    *[
        pytest.param("max_context_length", value, marks=pytest.mark.spec("HOP-37"))
        for value in (79, 1_048_577, 1_000_000_000_000)
    ],
    pytest.param("context_fit", "ignore", marks=pytest.mark.spec("HOP-38", "RFS-22")),
    pytest.param("conformance", "lax", marks=pytest.mark.spec("HOP-38")),
    pytest.param("availability_mode", "never", marks=pytest.mark.spec("HOP-38")),
    *[pytest.param("operation_key", value, marks=pytest.mark.spec("RFS-23")) for value in NO_UUIDS],
    *[
        pytest.param(option, value, marks=pytest.mark.spec("REQ-38"))
        for option in ("trusted_workers", "validated_backends", "slow_workers", "openai_guards", "dry_run")
        for value in NO_FLAGS
    ],
]


@pytest.mark.spec("RFS-29")
@pytest.mark.parametrize(("option", "value"), REFUSED)
def test_a_value_outside_an_options_range_is_refused_with_its_path(option: str, value: object) -> None:
    error = refuse(horde={option: value})
    sentences = error.extra["errors"]

    assert error.code is ErrorCode.BAD_REQUEST
    assert isinstance(sentences, dict)
    assert [path.partition("[")[0] for path in sentences] == [f"horde.{option}"]


@pytest.mark.spec("HOP-37", "REQ-35")
def test_a_context_outside_the_text_range_gets_the_validation_error() -> None:
    assert body_of(refuse(horde={"max_context_length": 1_048_577})) == {
        "message": "Input payload validation failed",
        "rc": "BadRequest",
        "errors": {"horde.max_context_length": "Input should be less than or equal to 1048576."},
    }


@pytest.mark.spec("HOP-39")
@pytest.mark.parametrize("option", sorted(ChatHordeOptions.model_fields))
def test_null_unsets_an_option_without_a_default_and_no_other(option: str) -> None:
    if option in {"only", "ignore", "max_context_length", "max_kudos", "operation_key"}:
        assert parse(horde={option: None}) == parse()
    else:
        assert list(body_of(refuse(horde={option: None}))["errors"]) == [f"horde.{option}"]  # type: ignore[call-overload]


@pytest.mark.spec("HOP-03", "RFS-19", "RFS-29")
def test_refuses_to_name_workers_in_two_ways() -> None:
    error = refuse(horde={"only": ["a"], "ignore": ["b"]})

    assert said(error) == conflict("'horde.only' and 'horde.ignore' cannot be sent together.")
    assert parse(horde={"only": ["a"], "ignore": None}).horde.only == ["a"]


@pytest.mark.spec("RFS-11", "RFS-27", "RFS-33")
@pytest.mark.parametrize("key", ["models", "Only", "", "modèle"])
@pytest.mark.parametrize("value", [None, 1, {}])
def test_refuses_an_unknown_option_with_its_path(key: str, value: object) -> None:
    assert said(refuse(horde={key: value})) == unsupported(f"horde.{key}")


TEXT_ROUTE_OPTIONS = [
    "style",
    "template",
    "webhook",
    "softprompt",
    "softprompts",
    "extra_source_images",
    "proxied_account",
    "allow_downgrade",
    "disable_batching",
]


@pytest.mark.spec("HOP-32", "HOP-34")
@pytest.mark.parametrize("option", TEXT_ROUTE_OPTIONS)
def test_options_of_text_requests_are_unknown_here(option: str) -> None:
    assert said(refuse(horde={option: True})) == unsupported(f"horde.{option}")
    assert said(refuse(**{option: True})) == unsupported(option)


@pytest.mark.spec("HOP-33")
@pytest.mark.parametrize(
    "sent", [{}, {"only": ["a"], "dry_run": True}, {"operation_key": KEY}, {"context_fit": "grow", "max_kudos": 5}]
)
def test_a_front_gets_the_same_options_from_the_same_model(sent: dict[str, Any]) -> None:
    assert ChatHordeOptions.model_validate(sent) == parse(horde=sent).horde


@pytest.mark.spec("HOP-33")
@pytest.mark.parametrize("sent", [{"only": []}, {"dry_run": 1}, {"conformance": None}, {"max_context_length": 79}])
def test_a_front_refuses_the_same_options_with_the_same_model(sent: dict[str, Any]) -> None:
    refuse(horde=sent)

    with pytest.raises(ValidationError):
        ChatHordeOptions.model_validate(sent)


JSON_OBJECT = {"type": "json_object"}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
CALL = {"id": "c", "type": "function", "function": {"name": "json", "arguments": "json"}}
SILENT = {"role": "user", "content": "Hello"}


@pytest.mark.spec("HOP-12", "HOP-40", "HOP-41")
@pytest.mark.parametrize(
    ("messages", "other"),
    [
        ([SILENT], {}),
        ([{**SILENT, "name": "json"}], {}),
        ([{**SILENT, "content": [{"type": "text", "text": "js"}, {"type": "text", "text": "on"}]}], {}),
        ([{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "content": "4", "tool_call_id": "c"}], {}),
        ([SILENT], {"tools": [{"type": "function", "function": {"name": "json", "description": "json"}}]}),
    ],
    ids=["no text", "name", "split", "call", "tool"],
)
def test_the_guard_refuses_a_json_object_nobody_asked_for(messages: list[Any], other: dict[str, Any]) -> None:
    sent = {"messages": messages, "response_format": JSON_OBJECT, **other}

    assert said(refuse(**sent, horde={"openai_guards": True})) == conflict(
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    )


@pytest.mark.spec("HOP-12", "HOP-13", "HOP-41")
@pytest.mark.parametrize("text", ["json", "JSON", "some Json, please", "xjsonx"])
@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_the_guard_passes_a_json_object_some_text_asks_for(text: str, role: str) -> None:
    for content in (text, [{"type": "text", "text": text}]):
        sent = [SILENT, {"role": role, "content": content}, SILENT]
        assert parse(messages=sent, response_format=JSON_OBJECT, horde={"openai_guards": True}).horde.openai_guards


@pytest.mark.spec("HOP-14", "HOP-42")
@pytest.mark.parametrize(
    ("response_format", "options"),
    [
        (JSON_OBJECT, {}),
        (JSON_OBJECT, {"openai_guards": False}),
        (JSON_SCHEMA, {"openai_guards": True}),
        ({"type": "text"}, {"openai_guards": True}),
        (None, {"openai_guards": True}),
    ],
)
def test_the_guard_acts_where_it_is_asked_for_alone(response_format: object, options: dict[str, Any]) -> None:
    parse(response_format=response_format, horde=options)
