"""A pattern of a client's schema is read before the compiler, which nothing can interrupt, sees it."""

import time

import pytest
import regex

from hordechat.contract.limits import MAX_SCHEMA_PATTERN_CHARACTERS, MAX_SCHEMA_PATTERN_STEPS
from hordechat.json_schema import patterns
from hordechat.json_schema.bounds import OutOfBounds, Stopwatch, UnusableSchema
from hordechat.json_schema.patterns import Patterns, read
from tests.speed import loops_of


def is_found(expression: str, text: str) -> bool:
    return Patterns().is_found(expression, text, Stopwatch(10))


@pytest.mark.parametrize(
    ("expression", "found", "not_found"),
    [
        ("", "", None),
        ("b", "abc", "ac"),
        ("^a{2,3}$", "aaa", "aaaa"),
        ("^(a|b)+?c*$", "abc", "cab"),
        (r"^\d{4}-\d{2}-\d{2}$", "2024-01-31", "24-1-31"),
        (r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$", "YWJj", "YWJ"),
        (r"^[\w.%+-]+@[\w.-]+\.[a-z]{2,}$", "a.b@c.de", "a@b"),
        (r"^\p{L}+$", "äß", "a1"),
        (r"^\P{Lu}$", "a", "A"),
        (r"^(?!.*secret)(?=.*open)", "open", "open secret"),
        ("(?<=a)b(?<!c)", "ab", "cb"),
        ("^(?<year>[0-9]{4})$", "2024", "024"),
        ("^(?P<x>a)(?P=x)$", "aa", "ab"),
        (r"^(a|b)\1$", "bb", "ab"),
        ("^(a)?(?(1)b|c)$", "c", "b"),
        ("(?i)^ä$", "Ä", "a"),
        ("(?im)^ä$", "x\nÄ", "a"),
        ("^(?s-i:.)$", "\n", "ab"),
        ("^(?>a+)b", "aab", "ba"),
        ("^{a}$", "{a}", "a"),
        ("^a{e}$", "a{e}", "b"),
        ("^a{e<=1}$", "a{e<=1}", "b"),
        ("^a{,2}$", "aa", "aaa"),
        ("^a}$", "a}", "a"),
        ("^[[a]$", "[", "]"),
        ("^[]a]$", "]", "["),
        ("^[^]a]$", "[", "]"),
        (r"^[\]({9}]$", "(", "["),
        ("^[[:a]$", ":", "b"),
        ("^[a||b]$", "|", "c"),
        ("^.$", "\ud800", "\n"),
        ("a++b", "aab", "aa"),
    ],
)
def test_is_found_as_the_standard_library_would(expression: str, found: str, not_found: str | None) -> None:
    assert is_found(expression, found)
    assert not_found is None or not is_found(expression, not_found)


@pytest.mark.parametrize(
    "expression",
    [
        "(", ")", "a)", "[a", "[]", "*", "+a", "(?", "(?<a", "a**", "a{3,2}", "(?<=a", r"\p{Nonsense}", "(?P<a>b)(?P<a",
        "\\", r"(a)\2", "(?P=a)", "(*", "a{99999999999}", "a{1000000}", "a{" + "9" * 5000 + "}",
        "(?x) a", "(?#comment)a", "(?V1)[a--b]", "(?if)a", "(?R)", "(a(?1)?)", "(?&a)", "(*PRUNE)", "(?|a|b)", "(?x:a)",
        "a(?i)b", "a(?i){9}", "(?i){9}a", "(?i)(?i)a", "(?:a)(?b:c)", "(?L)a", "(?r)b",
    ],
)  # fmt: skip
def test_what_is_no_pattern_here_is_unusable(expression: str) -> None:
    with pytest.raises(UnusableSchema):
        Patterns().compile(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "(?:" * 30 + "a" + "{5})" * 30,
        "(?:" * 60 + "a" + ")+" * 60,
        "(?:" * 60 + "a" + "){1,2}" * 60,
        "(?<=" * 40 + "a" + ")+" * 40,
        "(?:" * 12 + "a[(]" + "){9}" * 12,
        "(?:" * 12 + r"a\(" + "){9}" * 12,
        "(?:" * 12 + "a[](]" + "){9}" * 12,
        "(?:" * 12 + r"a[^\](]" + "){9}" * 12,
        "(?:" * 12 + "a[[(]" + "){9}" * 12,
        "(?:" * 12 + r"a\p{(}" + "){9}" * 12,
        "(?:" * 12 + "a{(?:b)}" + "){9}" * 12,
        "(?:" * 12 + "(?<n>" + "a" + "){3}" * 12 + ")",
        "(?i:" * 12 + "a" + "){9,}" * 12,
        "((ab){2}){20000}",
        f".{{{MAX_SCHEMA_PATTERN_STEPS}}}",
        "a" * (MAX_SCHEMA_PATTERN_CHARACTERS + 1),
    ],
)
def test_what_would_become_too_many_steps_is_not_compiled(expression: str) -> None:
    with pytest.raises(UnusableSchema):
        read(expression)


@pytest.mark.parametrize(
    ("expression", "steps"),
    [
        ("", 1),
        ("abc", 4),
        ("(ab){3}", 10),
        ("a*b?c{0,9}", 4),
        ("a+", 3),
        ("a{2,}", 4),
        ("((ab){2}){3}", 22),
        ("a|b", 4),
    ],
)
def test_counts_the_steps_a_pattern_becomes(expression: str, steps: int) -> None:
    assert read(expression).steps == steps


@pytest.mark.parametrize(
    "expression",
    [
        "a" * MAX_SCHEMA_PATTERN_CHARACTERS,
        "()" * (MAX_SCHEMA_PATTERN_CHARACTERS // 2),
        "|".join(f"w{number}" for number in range(800)),
        f"(a){{{MAX_SCHEMA_PATTERN_STEPS // 3}}}",
        "(?:" * 12 + "a" + ")+" * 12,
        "(?<=a{1,100})" * 300,
        "[" + "".join(chr(0x4E00 + 2 * offset) for offset in range(4000)) + "]",
        r"\p{L}" * 800,
    ],
    ids=["letters", "groups", "words", "written out", "nested", "behind", "set", "properties"],
)
def test_what_may_be_compiled_is_compiled_in_little_time(expression: str) -> None:
    assert loops_of(lambda: Patterns().compile(expression), enough=8) <= 8


def test_brackets_too_deep_for_the_compiler_are_no_pattern() -> None:
    with pytest.raises((UnusableSchema, RecursionError)):
        Patterns().compile("(?:" * 1000 + "a" + ")" * 1000)


def test_all_patterns_of_a_schema_share_what_they_may_become() -> None:
    compiled = Patterns()
    compiled.compile(f"a{{{MAX_SCHEMA_PATTERN_STEPS // 2}}}")
    compiled.compile(f"a{{{MAX_SCHEMA_PATTERN_STEPS // 2}}}")

    with pytest.raises(UnusableSchema):
        compiled.compile(f"b{{{MAX_SCHEMA_PATTERN_STEPS // 2}}}")


def test_compiles_a_pattern_once() -> None:
    compiled = Patterns()

    first = compiled.compile("a")

    assert isinstance(first, regex.Pattern)
    assert compiled.compile("a") is first


def test_waits_for_another_long_search_no_longer_than_there_is_time() -> None:
    started = time.monotonic()
    with patterns._long_searches, pytest.raises(OutOfBounds):
        Patterns().is_found("^(a|aa)+$", "a" * 40 + "!", Stopwatch(0.1))

    assert time.monotonic() - started >= 0.1
    with pytest.raises(OutOfBounds):
        Patterns().is_found("^(a|aa)+$", "a" * 40 + "!", Stopwatch(60))


def test_does_not_begin_a_search_without_time() -> None:
    with pytest.raises(OutOfBounds):
        Patterns().is_found("a", "a", Stopwatch(0))
