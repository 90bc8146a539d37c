"""Ctrl-C, a closed terminal and a polite kill: each unwinds the process once, so that everything it started ends."""

import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(SystemExit):
    """Someone asked this process to end."""


def end_on_signals() -> None:
    """Raise `Interrupted` in the main thread when the process is asked to end."""
    for each in ENDING:
        # Who starts it with nohup wants it to outlive the terminal.
        if not (each == signal.SIGHUP and signal.getsignal(each) == signal.SIG_IGN):
            signal.signal(each, _end)


def _end(number: int, _: object) -> None:
    # The unwinding is bounded in time; a second Ctrl-C would only leave more for the kernel to clear up.
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(128 + number)
