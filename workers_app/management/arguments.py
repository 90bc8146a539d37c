"""Arguments more than one command takes."""

import argparse

MOST_HOURS = 720
"""30 days: what is set from the command line ends by itself within that."""


def hours(text: str) -> int:
    """Read how many hours are wanted."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours from 1 to {MOST_HOURS}")
    return int(text)
