"""A reply's text is read as JSON, strictly."""

import json

import pytest

from hordechat.contract.limits import MAX_REPLY_NESTING
from hordechat.json_schema.judging import NotJson, parse_json
from tests.json_schema.strategies import nest


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0.5e3", -500.0),
        ("true", True),
        ("null", None),
        ('"text"', "text"),
        ('"\\ud800"', "\ud800"),
        (' {"a": [1, {}]}\n', {"a": [1, {}]}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("1e999", float("inf")),
        ("9" * 4300, 10**4300 - 1),
        ("[" * MAX_REPLY_NESTING + "]" * MAX_REPLY_NESTING, nest(MAX_REPLY_NESTING - 1, [])),
        ('{"a":' * MAX_REPLY_NESTING + "1" + "}" * MAX_REPLY_NESTING, ...),
    ],
)  # fmt: skip
def test_reads_json(text: str, value: object) -> None:
    assert value is ... or parse_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "text", "{", "[1,]", "{'a': 1}", "1 2", "\ufeff1", "NaN", "Infinity", "-Infinity", '{"a": [NaN]}',
        "9" * 4301, "[" + "9" * 4301 + "]", "01", "+1", ".5", '"\n"', "```json\n1\n```",
        "[" * (MAX_REPLY_NESTING + 1) + "]" * (MAX_REPLY_NESTING + 1),
        '[[{"a":' * (MAX_REPLY_NESTING // 3 + 1) + "1" + "}]]" * (MAX_REPLY_NESTING // 3 + 1),
        "[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000,
    ],
)  # fmt: skip
def test_refuses_what_is_no_json(text: str) -> None:
    with pytest.raises(NotJson):
        parse_json(text)


def test_reads_a_wide_reply() -> None:
    assert parse_json(json.dumps([[[]]] * 1000)) == [[[]]] * 1000
