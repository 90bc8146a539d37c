"""Progress of long work: one line a step, with its duration."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def use_readable_output() -> None:
    """Let every line appear at once, and let no character the terminal lacks stop the work."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace", line_buffering=True)


def abandon_output() -> int:
    """Throw away what is still to be printed, because nobody reads it any more, and return the exit code for that."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


@contextmanager
def step(text: str) -> Iterator[None]:
    """Name the work before it begins and print how long it took once it is done."""
    print(f"  {text} …", end="", flush=True)
    started = time.monotonic()
    try:
        yield
    except BaseException:
        print(" failed")
        raise
    print(f" {time.monotonic() - started:.1f} s")


@contextmanager
def talkative_step(text: str) -> Iterator[None]:
    """Do the same for work that prints lines of its own."""
    print(f"  {text} …")
    started = time.monotonic()
    yield
    print(f"  … took {time.monotonic() - started:.1f} s")
