"""The replacement filter: rewrite what a flagged user asks, so that it is about adults.

A text is normalised, then every filter of the moderators is applied in order, then our own words for minors are
swapped. The texts of a conversation are rewritten one by one, and nothing else of it is touched (FLT-22, FLT-29).
"""

import logging
import time
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import regex

from hordechat.contract.chat.submission import Message, Part, TextPart
from hordechat.contract.limits import MAX_FOLDED_CHARACTERS, MAX_SCREENED_CHARACTERS, SCREENING_SECONDS
from requests_app.errors import CorruptPrompt
from requests_app.rules import patterns

logger = logging.getLogger(__name__)

FILTER_TYPES = range(10, 30)
"""Types others know filters by; only the first one does anything here."""
REPLACEMENT_FILTER_TYPE = FILTER_TYPES[0]

ADULT_TERMS = {
    "adolescent": "adult", "adolescents": "adults", "babies": "adults", "baby": "adult", "boy": "man", "boys": "men",
    "child": "adult", "childhood": "adulthood", "childish": "mature", "childlike": "mature", "children": "adults",
    "girl": "woman", "girls": "women", "infant": "adult", "infants": "adults", "juvenile": "adult",
    "juveniles": "adults", "kid": "adult", "kiddie": "adult", "kiddies": "adults", "kids": "adults",
    "kindergartener": "adult", "kindergarteners": "adults", "loli": "woman", "lolicon": "woman", "lolis": "women",
    "lolita": "woman", "lolitas": "women", "minor": "adult", "minors": "adults", "preadolescent": "adult",
    "prepubescent": "adult", "preschooler": "adult", "preschoolers": "adults", "preteen": "adult",
    "preteens": "adults", "pubescent": "adult", "schoolboy": "man", "schoolboys": "men", "schoolgirl": "woman",
    "schoolgirls": "women", "shota": "man", "shotacon": "man", "shotas": "men", "teen": "adult", "teenage": "adult",
    "teenaged": "adult", "teenager": "adult", "teenagers": "adults", "teens": "adults", "toddler": "adult",
    "toddlers": "adults", "tween": "adult", "tweens": "adults", "under age": "adult", "underage": "adult",
    "underaged": "adult", "youngster": "adult", "youngsters": "adults",
}  # fmt: skip
"""Our words for minors, as they stand in a normalised text, and what takes their place."""

_AGE_WORD = regex.compile(rf"(?<!\p{{L}})(?:{'|'.join(ADULT_TERMS)})(?!\p{{L}})", regex.IGNORECASE)

# Every pattern below looks at each character a bounded number of times: texts are up to 1 MiB and anyone's.
_LINE_BREAK = regex.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_ACCENT = regex.compile(
    r"(?V1)[[\p{M}&&\p{Script=Inherited}]--[\u3099\u309a]]|[\p{Default_Ignorable_Code_Point}\p{Cf}]"
)
"""Accents, and what cannot be seen. Vowels of Indic scripts and Japanese voicing make other words, so they stay."""
_MARK_RUN = regex.compile(r"(?<=\p{M}{16})\p{M}++")
"""What is left of a run of marks after those a letter of any script can have."""
_WEIGHT = regex.compile(r":[ \t]*+[+-]?\d++(?:\.\d*+)?+[ \t]*+(?=[)\]}])")
"""The number of `(word:1.2)`; its brackets are punctuation."""
_PUNCTUATION = r"[\p{P}\p{Sc}\p{Sk}\p{Sm}]"
_PUNCTUATED_LETTERS = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}])\p{{L}}(?:{_PUNCTUATION}++\p{{L}}(?![\p{{L}}\p{{N}}])){{2,}}+"
)
_CONTRACTION = regex.compile(r"(?<=\p{L})['\u2019](?=(?:[dmt]|ll|re|ve)(?!\p{L}))", regex.IGNORECASE)
"""The apostrophe of `I'm a`, whose letters are not spaced out."""
_GAP = regex.compile(rf"(?V1)[{_PUNCTUATION}\p{{Z}}\p{{Cc}}--\n]")
_SPACED_LETTERS = regex.compile(r"(?<!\S)\p{L}(?: \p{L}(?!\S)){2,}+")
_NO_LETTER = regex.compile(r"\P{L}++")
_SPACES = regex.compile(r" {2,}+")
_SPACE_AT_LINE_END = regex.compile(r"(?m)^ | $")


@dataclass(frozen=True, slots=True)
class Filter:
    """A moderator's pattern and what takes the place of what it finds, as it is: no group references."""

    id: int
    regex: str
    replacement: str = ""


class Budget:
    """What screening may still take for one request: time, and characters of rewritten text.

    It is a stop watch and no clock: no moment goes into a decision, only how long the work has taken.
    """

    def __init__(self, *, seconds: float = SCREENING_SECONDS, characters: int = MAX_SCREENED_CHARACTERS) -> None:
        self._ends_at = time.monotonic() + seconds
        self.characters_left = characters

    def get_seconds_left(self) -> float:
        """Return the time that is left.

        Raises:
            CorruptPrompt: none is.
        """
        seconds = self._ends_at - time.monotonic()
        if seconds <= 0:
            raise CorruptPrompt
        return seconds

    def keep(self, text: str) -> None:
        """Count a rewritten text.

        Raises:
            CorruptPrompt: there is no room for it.
        """
        if len(text) > self.characters_left:
            raise CorruptPrompt
        self.characters_left -= len(text)


def rewrite_messages(
    messages: Iterable[Message], filters: Sequence[Filter], *, budget: Budget | None = None
) -> tuple[Message, ...]:
    """Return the messages with every text replaced by itself; images, names and tool calls stay as they are.

    Raises:
        CorruptPrompt: the texts cannot be rewritten within the budget, which is one request's unless given.
    """
    budget = budget or Budget()
    return tuple(replace(message, content=_rewrite_content(message, filters, budget)) for message in messages)


def rewrite_text(text: str, filters: Sequence[Filter], *, budget: Budget | None = None) -> str:
    """Return a text as a worker may receive it; nothing but spaces becomes the empty text.

    Raises:
        CorruptPrompt: the text cannot be rewritten within the budget, which is one request's unless given.
    """
    budget = budget or Budget()
    text = normalise(text)
    for each in filters:
        if not text:
            break
        text = _apply(each, text, budget)
    budget.get_seconds_left()
    text = _tidy(_AGE_WORD.sub(_to_adult_term, text))
    budget.keep(text)
    return text


def is_age_related(text: str, filters: Sequence[Filter], *, budget: Budget | None = None) -> bool:
    """Return whether a text holds one of our words for minors or something a filter finds.

    Raises:
        CorruptPrompt: that cannot be found out within the budget, which is one request's unless given.
    """
    budget = budget or Budget()
    normalised = normalise(text)
    if _AGE_WORD.search(normalised):
        return True
    for each in filters:
        pattern = _find_pattern(each)
        if pattern is None:
            continue
        try:
            if pattern.search(normalised, timeout=budget.get_seconds_left(), concurrent=True):
                return True
        except (TimeoutError, MemoryError) as error:
            raise CorruptPrompt from error
    return False


def normalise(text: str) -> str:
    """Return a text as filters see it: words with single spaces between them, in the lines they stand in.

    Weights, punctuation, accents and invisible characters are gone, and `c h i l d` is one word.

    Raises:
        CorruptPrompt: it is longer than a request's texts may be, once its characters are folded.
    """
    text = _LINE_BREAK.sub("\n", _fold(text))
    if len(text) > MAX_FOLDED_CHARACTERS:
        # A character may fold into eighteen; what is refused in the end is not worked on until then.
        raise CorruptPrompt
    text = _WEIGHT.sub("", text)
    text = _PUNCTUATED_LETTERS.sub(_rejoin, text)
    text = _GAP.sub(" ", _CONTRACTION.sub("", text))
    # Before spaces collapse, those between words are wider than those between letters.
    text = _SPACES.sub(" ", _SPACED_LETTERS.sub(_rejoin, text))
    return _tidy(_SPACED_LETTERS.sub(_rejoin, text))


def _to_adult_term(found: regex.Match[str]) -> str:
    word = found[0].lower()
    # A filter's replacement is not normalised, and ignoring case a pattern takes letters such as İ for i.
    return ADULT_TERMS.get(word) or ADULT_TERMS[normalise(word)]


def _fold(text: str) -> str:
    # Marks in a row are sorted by insertion, in the square of their number, so that no run of them may be long.
    text = unicodedata.normalize("NFKD", _MARK_RUN.sub("", _ACCENT.sub("", text)))
    # Composed again, or Hangul would stay in pieces no filter is written in.
    return unicodedata.normalize("NFC", _MARK_RUN.sub("", _ACCENT.sub("", text)))


def _rejoin(run: regex.Match[str]) -> str:
    letters = _NO_LETTER.sub("", run[0])
    # `a c h i l d`: the article is no letter of the word.
    if letters[1:].casefold() in ADULT_TERMS:
        return f"{letters[0]} {letters[1:]}"
    return letters


def _tidy(text: str) -> str:
    text = _SPACE_AT_LINE_END.sub("", _SPACES.sub(" ", text))
    return text if text.strip() else ""


def _rewrite_content(message: Message, filters: Sequence[Filter], budget: Budget) -> str | tuple[Part, ...] | None:
    if message.content is None:
        return None
    if isinstance(message.content, str):
        return rewrite_text(message.content, filters, budget=budget)
    return tuple(
        TextPart(text=rewrite_text(part.text, filters, budget=budget)) if isinstance(part, TextPart) else part
        for part in message.content
    )


def _apply(each: Filter, text: str, budget: Budget) -> str:
    """Replace what a filter finds; a text that would outgrow the budget is not built to its end."""
    pattern = _find_pattern(each)
    if pattern is None:
        return text
    most = budget.characters_left // max(1, len(each.replacement)) + 1
    template = each.replacement.replace("\\", "\\\\")
    try:
        rewritten, count = pattern.subn(template, text, count=most, timeout=budget.get_seconds_left(), concurrent=True)
    except (TimeoutError, MemoryError) as error:
        raise CorruptPrompt from error
    if count == most:
        raise CorruptPrompt
    return rewritten


def _find_pattern(each: Filter) -> patterns.Pattern | None:
    pattern = patterns.find_compiled(each.regex)
    if pattern is None:
        logger.warning(
            "a prompt filter cannot be compiled and is left out: remove it", extra={"prompt_filter_id": each.id}
        )
    return pattern
