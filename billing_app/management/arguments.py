"""What several commands read from the command line."""

import argparse


def user_id(text: str) -> int:
    """Read a user's id from the command line: the number, or the whole alias it is the end of."""
    try:
        return int(text.rpartition("#")[2])
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a user's number nor an alias with its #number") from None
