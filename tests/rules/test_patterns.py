"""A moderator's pattern is tried before it is kept."""

import pytest

from requests_app.rules import patterns


@pytest.mark.parametrize(
    "expression",
    [
        "word", r"\bword\b", r"\b(young|small)\s(thing|one)s?\b", r"w\w{0,20}d", "👦", "ärger", "[a-z]{2}9",
        "(?<!not )allowed", r"(?V1)[\w--[0-9]]{3}x", "x" * 1000, "a(?=b)",
    ],
)  # fmt: skip
def test_a_sound_pattern_has_no_fault(expression: str) -> None:
    assert patterns.find_fault(expression) is None


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("(word", "cannot be compiled: missing )"),
        ("[a", "cannot be compiled: "),
        (r"\L<words>", "cannot be compiled: "),
        ("(?Lu)a", "cannot be compiled: "),
        ("(" * 1000, "cannot be compiled: "),
        ("a{99999999999}", "cannot be compiled: "),
        ("", "matches the empty text"),
        ("a*", "matches the empty text"),
        ("word|", "matches the empty text"),
        (r"\b", "matches the empty text"),
        ("$", "matches the empty text"),
        (r"(?=\w)", "matches the empty text"),
        (r"^(a|aa)+$", "takes longer than 0.5 s on a text of 20000 characters"),
        (r"(q+q+)+y", "takes longer than 0.5 s"),
        (r"(\w+\s?)+$", "takes longer than 0.5 s"),
        (r"(?:ab|(?R))c(?R)|z", "takes longer than 0.5 s"),
    ],
)
def test_a_faulty_pattern_is_described(expression: str, fault: str) -> None:
    assert (patterns.find_fault(expression) or "").startswith(fault)


def test_a_pattern_is_compiled_once_and_ignores_case() -> None:
    compiled = patterns.find_compiled("wOrd")

    assert compiled is not None
    assert compiled.search("WORD")
    assert patterns.find_compiled("wOrd") is compiled
    assert patterns.find_compiled("(word") is None
