"""A short text that matches a regular expression, written from it. No expression is run: some take for ever to fail.

Understood are characters and classes, groups, alternatives and repetition, with anchors at the ends; not what looks
ahead or back.
"""

import re
import string
from functools import lru_cache

MAX_PATTERN_CHARACTERS = 1000
MAX_GROUP_LEVELS = 20
ALPHABET = string.ascii_lowercase + string.digits + string.ascii_uppercase + string.punctuation + " "

# Doubled signs in a class are reserved, and Python warns of them.
_UNIT = re.compile(
    r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[dDwWsSnrtfv]|\\[^\w\s]"
    r"|\[\^?(?:\\.|(?!--|&&|~~|\|\|)[^\]\\\[])+\]"
    r"|[^\\()\[\]{}*+?|^$]"
)
_REPETITION = re.compile(r"(?:(?P<sign>[*+?])|\{(?P<least>\d{1,6})(?P<open>,(?P<most>\d{1,6})?)?\})\??")
_GROUP = re.compile(r"\((?:\?:|\?P?<\w+>|(?!\?))")


class _NotSimple(Exception):
    """The expression is more than is understood here, or its texts are too long."""


def find(pattern: str, *, least: int, most: int) -> str | None:
    """Return a text of `least` to `most` characters that matches, None where none is found."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return None
    try:
        text = _Writer(pattern, extra=0, most=most).write()
        if len(text) < least:
            # What is missing, by repeating once more what may be repeated.
            text = _Writer(pattern, extra=least - len(text), most=most).write()
    except _NotSimple:
        return None
    return text if least <= len(text) <= most else None


class _Writer:
    """Reads an expression from left to right and writes the text meanwhile."""

    def __init__(self, pattern: str, *, extra: int, most: int) -> None:
        self._pattern = pattern
        self._at = 0
        self._extra = extra
        self._most = most

    def write(self) -> str:
        text = self._write_alternatives(level=0)
        if self._at < len(self._pattern):
            raise _NotSimple
        return text

    def _write_alternatives(self, *, level: int) -> str:
        texts = [self._write_sequence(level=level)]
        while self._take("|"):
            texts.append(self._write_sequence(level=level))
        return min(texts, key=len)

    def _write_sequence(self, *, level: int) -> str:
        text = ""
        if level == 0:
            self._take("^")
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            if level == 0 and self._take("$"):
                if self._at < len(self._pattern) and self._pattern[self._at] != "|":
                    raise _NotSimple
                break
            text += self._repeat(self._write_piece(level=level))
            if len(text) > self._most:
                raise _NotSimple
        return text

    def _write_piece(self, *, level: int) -> str:
        if (group := _GROUP.match(self._pattern, self._at)) is not None and level < MAX_GROUP_LEVELS:
            self._at = group.end()
            text = self._write_alternatives(level=level + 1)
            if not self._take(")"):
                raise _NotSimple
            return text
        unit = _UNIT.match(self._pattern, self._at)
        character = None if unit is None else _pick(unit[0])
        if unit is None or character is None:
            raise _NotSimple
        self._at = unit.end()
        return character

    def _repeat(self, text: str) -> str:
        found = _REPETITION.match(self._pattern, self._at)
        if found is None:
            return text
        self._at = found.end()
        if found["sign"]:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[found["sign"]]
        else:
            least = int(found["least"])
            most = int(found["most"]) if found["most"] else None if found["open"] else least
        times = least + self._extra if most is None else min(least + self._extra, most)
        if times < least or len(text) * times > self._most:
            raise _NotSimple
        return text * times

    def _take(self, sign: str) -> bool:
        is_there = self._pattern.startswith(sign, self._at)
        self._at += len(sign) if is_there else 0
        return is_there


@lru_cache(maxsize=1024)
def _pick(unit: str) -> str | None:
    """Return a character that the expression of a single one matches."""
    try:
        single = re.compile(unit)
    except re.error:
        return None
    return next((character for character in ALPHABET + unit if single.fullmatch(character)), None)
