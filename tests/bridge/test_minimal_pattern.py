"""What text is written for a regular expression."""

import re

import pytest

from workers_app.bridge import minimal_pattern


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("", ""),
        ("abc", "abc"),
        ("^abc$", "abc"),
        ("^a|bc$", "a"),
        ("^(dog|cat|ox)$", "ox"),
        (r"^\d{4}-\d{2}-\d{2}$", "0000-00-00"),
        (r"^\w+\s\W$", "a !"),
        (r"\D\S.", "aaa"),
        (r"^#[0-9a-f]{6}$", "#000000".replace("0", "a")),
        (r"^[A-Z]{2,3}\d*x?$", "AA"),
        (r"^[^a-y]$", "z"),
        (r"^[\w.+-]+@[\w-]+\.[a-z]{2,}$", "a@a.aa"),
        (r"^(?:ab){2}(?P<name>c)+?$", "ababc"),
        (r"^(?<name>c)$", "c"),
        (r"\^\$\(\)\[\]\{\}\.\\\/", "^$()[]{}.\\/"),
        (r"^\x41$", "A"),
        ("^[éè]$", "é"),
        ("ß", "ß"),
        ("((a{2}){2}){2}", "a" * 8),
    ],
)
def test_the_text(pattern: str, text: str) -> None:
    assert minimal_pattern.find(pattern, least=0, most=100) == text
    if "(?<" not in pattern:  # a name as JavaScript spells it
        assert re.search(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "least", "text"),
    [
        ("^a+$", 5, "aaaaa"),
        ("^a{2,4}$", 4, "aaaa"),
        ("^@[a-z]*$", 3, "@aa"),
        ("^(a|aa)+$", 40, "a" * 40),
        ("^a{2,4}$", 5, None),
        ("^a+$", 101, None),
        ("^a{101}$", 0, None),
    ],
)
def test_repeats_what_may_be_repeated_to_be_long_enough(pattern: str, least: int, text: str | None) -> None:
    assert minimal_pattern.find(pattern, least=least, most=100) == text


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)a", "(?!a)b", "(?<=a)b", "(?i)a", r"(a)\1", r"\ba", r"\p{L}", "a^b", "a$b", "(^a$)", "a**", "a++", "*a",
        "(a", "a)", "[a", "a]", "a{", "a{3,2}", "[z-a]", "[a&&b]", "[[:alpha:]]", "[]", r"[^\s\S]", "\\",
        "a" * 1001, "(" * 30 + ")" * 30,
    ],
)  # fmt: skip
def test_nothing_is_written_for_what_is_not_understood(pattern: str) -> None:
    assert minimal_pattern.find(pattern, least=0, most=2000) is None
