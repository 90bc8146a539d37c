"""The replacement filter rewrites every text of a conversation by itself, and within bounds."""

import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hordechat.contract.chat import Message
from hordechat.contract.chat.submission import TextPart
from hordechat.contract.limits import MAX_CHAT_TEXT_BYTES, MAX_FOLDED_CHARACTERS
from hordechat.contract.vocabulary import Role
from requests_app.errors import CorruptPrompt
from requests_app.rules.screening import (
    ADULT_TERMS,
    Budget,
    Filter,
    is_age_related,
    normalise,
    rewrite_messages,
    rewrite_text,
)
from tests.rules.strategies import TEXTS, conversations
from tests.rules.submissions import IMAGE, answer, assistant, calls, pictures, system, user

mark = pytest.mark
CATASTROPHE = Filter(id=1, regex=r"^(a|aa)+$")
LONG_RUN = "a" * 5000 + "b"
FULL_WIDTH = "".join(character if character == " " else chr(ord(character) + 0xFEE0) for character in "child (kid:1.2)")


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Hello there", "Hello there"),
        ("(word:1.2)", "word"),
        ("((word))", "word"),
        ("[word]", "word"),
        ("a (red: 0.5 ) and {blue:-1} hat", "a red and blue hat"),
        ("at 10:30 (late)", "at 10 30 late"),
        ("one, two; three. $4+5 <six>_seven", "one two three 4 5 six seven"),
        ("c h i l d", "child"),
        ("the  c h i l d  o n e", "the child one"),
        ("c  h  i  l  d", "child"),
        ("c.h.i.l.d", "child"),
        ("c - h - i - l - d", "child"),
        ("(c:1.1)(h:1.1)(i:1.1)(l:1.1)(d:1.1)", "child"),
        ("a c h i l d", "a child"),
        ("I'm a poet, e.g. they\u2019re 5 kids' friends", "Im a poet e g theyre 5 kids friends"),
        ("it's k'i'd", "it s kid"),
        ("c h i l\nd", "chil\nd"),
        ("Café, déjà vu, Ångström", "Cafe deja vu Angstrom"),
        (FULL_WIDTH, "child kid"),
        ("ch\u200bi\u00adl\ufe0fd", "child"),
        ("C\u0336h\u0336i\u0336l\u0336d\u0336", "Child"),
        ("한국어, がぎ नमस्ते", "한국어 がぎ नमस्ते"),
        ("two   spaces\tand  tabs", "two spaces and tabs"),
        (" a \r\n\n  b\r c\u2028", "a\n\nb\nc\n"),
        ("👦 stays", "👦 stays"),
        ("?!... \n --", ""),
        ("", ""),
    ],
)
def test_a_text_is_normalised(text: str, normal: str) -> None:
    assert normalise(text) == normal


@given(text=TEXTS)
def test_normalising_leaves_single_spaces_and_none_at_the_ends_of_lines(text: str) -> None:
    normal = normalise(text)

    assert "  " not in normal
    assert all(line == line.strip(" ") for line in normal.split("\n"))


@pytest.mark.parametrize(
    "piece",
    [
        "a", "a ", "a  ", "a.", ".", " ", "\n", " \n", ":1", ":", ": ", "(", "1", "\u0301", "\u0316\u0301",
        "\u05b1\u05b0", "\u05b1\u200b\u05b0", "\u0d4d\u0d3c", "\u1100\u0316", "가",
    ],
)  # fmt: skip
def test_the_largest_texts_are_normalised_in_a_time_that_grows_with_their_length(piece: str) -> None:
    # Work in the square of the length would take minutes, and the time-out of the tests ends it.
    text = "x" + piece * (MAX_CHAT_TEXT_BYTES // len(piece.encode()))

    assert len(normalise(text)) <= len(text)


@pytest.mark.parametrize(
    ("filters", "text", "rewritten"),
    [
        ([], "A kid and two Girls, TEENS!", "A adult and two women adults"),
        ([], "s c h o o l g i r l", "woman"),
        ([], "an under-age one", "an adult one"),
        ([], "kidney, boycott, teenager's 5kids", "kidney boycott adult s 5adults"),
        ([], "a kid\nand a boy", "a adult\nand a man"),
        ([Filter(id=1, regex="secret", replacement="thing")], "My Secret, my SECRET", "My thing my thing"),
        ([Filter(id=1, regex=r"\bx\w*")], "an xylophone here", "an here"),
        ([Filter(id=1, regex=".+")], "everything\ngoes", ""),
        ([Filter(id=1, regex="a", replacement="b"), Filter(id=2, regex="b", replacement="c")], "ab", "cc"),
        ([Filter(id=2, regex="b", replacement="c"), Filter(id=1, regex="a", replacement="b")], "ab", "bc"),
        ([Filter(id=1, regex="dwarf", replacement="kid")], "a dwarf", "a adult"),
        ([Filter(id=1, regex="dwarf", replacement="k\u0130d")], "a dwarf", "a adult"),
        ([Filter(id=1, regex="(o)ne", replacement=r"\1\n\g<9>")], "one", r"\1\n\g<9>"),
        ([Filter(id=1, regex=r"\b", replacement="-")], "one", "-one-"),
        ([Filter(id=1, regex="a")], "!!!", ""),
    ],
)
def test_a_text_is_rewritten(filters: list[Filter], text: str, rewritten: str) -> None:
    assert rewrite_text(text, filters) == rewritten


@pytest.mark.parametrize("word", ADULT_TERMS)
def test_each_of_our_words_is_swapped_for_one_that_is_none_of_them(word: str) -> None:
    swapped = rewrite_text(f"The {word.upper()}.", [])

    assert swapped == f"The {ADULT_TERMS[word]}"
    assert not is_age_related(swapped, [])


@pytest.mark.parametrize(
    ("text", "is_related"),
    [
        ("a small child", True),
        ("a small c-h-i-l-d", True),
        ("KIDS", True),
        ("kidneys", False),
        ("a grown man", False),
        ("the word of a moderator", True),
        ("THE WORD", True),
        ("", False),
    ],
)
def test_a_text_is_age_related_by_our_words_and_by_filters(text: str, is_related: bool) -> None:
    filters = [Filter(id=1, regex="unseen"), Filter(id=2, regex=r"\bword\b")]

    assert is_age_related(text, filters) is is_related


@pytest.mark.spec("FLT-29")
def test_string_contents_and_text_parts_are_rewritten_each_by_itself() -> None:
    parts = Message(
        role=Role.USER,
        content=(TextPart(text="^ a kid"), IMAGE, TextPart(text="!"), TextPart(text="kid $")),
        name="kid",
    )

    rewritten = rewrite_messages(
        [system("a\nkid"), parts, assistant("two kids")], [Filter(id=1, regex="^(.)", replacement="<\\1>")]
    )

    assert rewritten == (
        system("<\\1>\nadult"),
        Message(
            role=Role.USER,
            content=(TextPart(text="<\\1> adult"), IMAGE, TextPart(text=""), TextPart(text="<\\1>id")),
            name="kid",
        ),
        assistant("<\\1>wo adults"),
    )


@pytest.mark.spec("FLT-16")
def test_an_emptied_text_is_an_empty_string_in_a_message_that_stays() -> None:
    everything = [Filter(id=1, regex=".")]

    rewritten = rewrite_messages([user("Hello"), pictures(2), answer("c1", "noon"), user("\n")], everything)

    assert rewritten == (
        user(""),
        Message(role=Role.USER, content=(TextPart(text=""), IMAGE, IMAGE)),
        answer("c1", ""),
        user(""),
    )


@pytest.mark.spec("FLT-22")
def test_tool_calls_and_their_arguments_are_not_rewritten() -> None:
    everything = [Filter(id=1, regex=".", replacement="x")]

    rewritten = rewrite_messages([calls("c1", content="ab"), calls("c2")], everything)

    assert rewritten == (calls("c1", content="xx"), calls("c2"))


@given(messages=conversations())
def test_a_conversation_keeps_its_shape(messages: tuple[Message, ...]) -> None:
    rewritten = rewrite_messages(messages, [Filter(id=1, regex="x")])

    def shape(message: Message) -> tuple[object, ...]:
        content = message.content
        return (
            message.role, message.name, message.tool_calls, message.tool_call_id, type(content),
            [part if part == IMAGE else type(part) for part in message.parts],
        )  # fmt: skip

    assert [shape(message) for message in rewritten] == [shape(message) for message in messages]


@pytest.mark.spec("FLT-30")
@given(text=st.sampled_from(["a kid", "x"]) | TEXTS)
def test_nothing_is_added_behind_a_text(text: str) -> None:
    once = rewrite_text(f"{text} end", [Filter(id=1, regex="x", replacement="y")])

    assert once.endswith(("end", "nd"))
    assert "###" not in once


def refuses(call: Callable[[], object]) -> str:
    with pytest.raises(CorruptPrompt) as refusal:
        call()
    return refusal.value.message


def test_a_catastrophic_pattern_is_ended_and_the_refusal_quotes_no_text() -> None:
    for call in (
        lambda: rewrite_messages([user(LONG_RUN)], [CATASTROPHE], budget=Budget(seconds=0.2)),
        lambda: is_age_related(LONG_RUN, [CATASTROPHE], budget=Budget(seconds=0.2)),
        lambda: rewrite_messages([user(LONG_RUN)], [CATASTROPHE]),
    ):
        assert refuses(call) == "The texts of this request could not be screened, or nothing is left of them."


def test_one_budget_of_time_is_shared_by_all_texts_and_filters() -> None:
    budget = Budget(seconds=0.2)
    refuses(lambda: rewrite_text(LONG_RUN, [CATASTROPHE], budget=budget))

    refuses(lambda: rewrite_text("short", [Filter(id=2, regex="x")], budget=budget))
    refuses(lambda: rewrite_text("short", [], budget=budget))
    refuses(lambda: is_age_related("short", [Filter(id=2, regex="x")], budget=budget))


def test_replacements_longer_than_what_they_replace_do_not_fill_the_memory() -> None:
    grow = [Filter(id=each, regex=".", replacement="y" * 255) for each in range(8)]

    refuses(lambda: rewrite_text("x" * 200_000, grow))


def test_the_characters_of_all_texts_count_together() -> None:
    grow = [Filter(id=1, regex="x", replacement="yyyy")]

    assert rewrite_messages([user("xx"), user("xx")], grow, budget=Budget(characters=16))[1] == user("y" * 8)
    refuses(lambda: rewrite_messages([user("xx"), user("xxx")], grow, budget=Budget(characters=16)))
    refuses(lambda: rewrite_messages([user("zz"), user("z")], grow, budget=Budget(characters=2)))


def test_a_filter_that_is_no_pattern_is_left_out_and_logged_by_its_id(caplog: pytest.LogCaptureFixture) -> None:
    filters = [Filter(id=7, regex="(secret"), Filter(id=8, regex="a", replacement="b")]

    with caplog.at_level(logging.WARNING):
        assert rewrite_text("(secret a", filters) == "secret b"
        assert not is_age_related("(secret", filters[:1])

    assert {(record.getMessage(), vars(record)["prompt_filter_id"]) for record in caplog.records} == {
        ("a prompt filter cannot be compiled and is left out: remove it", 7)
    }


def test_a_text_whose_characters_fold_into_more_than_is_screened_is_refused_at_once() -> None:
    with pytest.raises(CorruptPrompt):
        normalise("\ufdfa" * (MAX_FOLDED_CHARACTERS // 18 + 1))
