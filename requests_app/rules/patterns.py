"""Moderators' patterns: compiled once a process, and tried on hostile texts before they are kept.

No trial finds every slow pattern. What holds is the time-out that whoever runs one gives it.
"""

from functools import lru_cache

import regex

from hordechat.contract.limits import FILTER_TRIAL_SECONDS, MAX_FILTER_COUNT

Pattern = regex.Pattern[str]

UNUSABLE = (regex.error, ValueError, OverflowError, RecursionError)
"""What the compiler raises: a wrong pattern, flags that exclude each other, numbers too large, brackets too deep."""

EVERYDAY_TEXT = "An ordinary line of 8 words, the first.\nAnd\tanother; one with 2 tabs\t(at least).\n\n"
TRIAL_CHARACTERS = 20_000
"""Enough for a search whose time grows with the square of the text to take longer than it may."""
MOST_OWN_CHARACTERS = 16


def compile_pattern(expression: str) -> Pattern:
    """Return the pattern, which ignores case.

    Raises:
        regex.error, ValueError, OverflowError, RecursionError: it is none.
    """
    return regex.compile(expression, regex.IGNORECASE, cache_pattern=False)


@lru_cache(maxsize=2 * MAX_FILTER_COUNT)
def find_compiled(expression: str) -> Pattern | None:
    """Return the pattern, or None for what cannot be compiled."""
    try:
        return compile_pattern(expression)
    except UNUSABLE:
        return None


def find_fault(expression: str) -> str | None:
    """Return why a pattern should not be kept, as the end of a sentence about it, or None for a sound one."""
    try:
        pattern = compile_pattern(expression)
    except UNUSABLE as error:
        return f"cannot be compiled: {error}"
    try:
        for text in ("", EVERYDAY_TEXT):
            if any(not match[0] for match in pattern.finditer(text, timeout=FILTER_TRIAL_SECONDS, concurrent=True)):
                return "matches the empty text, and so every text"
        for text in _list_hostile_texts(expression):
            pattern.subn("", text, timeout=FILTER_TRIAL_SECONDS, concurrent=True)
    except (TimeoutError, MemoryError):
        return (
            f"takes longer than {FILTER_TRIAL_SECONDS} s on a text of {TRIAL_CHARACTERS} characters: "
            "bound its repeats, as in \\w{1,20} for \\w+, and nest none"
        )
    return None


def _list_hostile_texts(expression: str) -> list[str]:
    """Return runs of usual characters and of the pattern's own, each with an end that makes a greedy search go back."""
    own = list(dict.fromkeys(character for character in expression if character.isalnum()))[:MOST_OWN_CHARACTERS]
    pieces = dict.fromkeys(["a", "0", " ", "-", "ab", "a ", "a1 ", "".join(own), *own])
    return [piece * (TRIAL_CHARACTERS // len(piece)) + "\n!" for piece in pieces if piece]
