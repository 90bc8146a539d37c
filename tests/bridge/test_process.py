"""The bridge as a process: help, keys, signals, and no Django."""

import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bridge import stands
from tests.bridge.stands import COMPLETIONS, POP, SUBMIT, Response, Stand, bodies, popped, refusal
from workers_app.bridge import VERSION

ROOT = Path(__file__).parents[2]
KEY = "secret-key"

WITHOUT_DJANGO = """
import runpy, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"django", "rest_framework", "celery", "psycopg", "redis"}:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
sys.argv = ["bridge", "--help"]
runpy.run_module("workers_app.bridge", run_name="__main__")
"""


@contextmanager
def start(arguments: Sequence[str], *, key: str | None = KEY) -> Iterator["subprocess.Popen[str]"]:
    environ = {"PATH": os.environ["PATH"], **({} if key is None else {"HORDE_BRIDGE_API_KEY": key})}
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finish(arguments: Sequence[str], *, key: str | None = KEY) -> tuple[int, str, str]:
    with start(arguments, key=key) as process:
        out, err = process.communicate(timeout=20)
        return process.returncode, out, err


def bridge(horde: Stand, *more: str) -> list[str]:
    named = ["--url", horde.url, "--name", "my worker", "--model", "demo/echo", "--poll-seconds", "0.1"]
    return ["-m", "workers_app.bridge", *named, *more]


def test_help_shows_every_option_and_needs_no_key() -> None:
    code, out, _ = finish(["-m", "workers_app.bridge", "--help"], key=None)

    assert code == 0
    for option in (
        "url", "name", "api-key-file", "model", "max-context-length", "max-length", "backend", "backend-url",
        "backend-model", "backend-kind", "context-check", "feature", "threads", "poll-seconds", "grace-seconds", "once",
    ):  # fmt: skip
        assert f"--{option}" in out
    assert out.count("default:") == 14
    assert out.count("(required)") == 2


def test_runs_with_django_blocked() -> None:
    code, out, err = finish(["-c", WITHOUT_DJANGO], key=None)

    assert (code, err) == (0, "")
    assert "python -m workers_app.bridge" in out


def test_a_missing_key_is_a_usage_error_and_nothing_is_sent(horde: Stand) -> None:
    code, _, err = finish(bridge(horde, "--backend", "demo"), key=None)

    assert code == 2
    assert "There is no API key: set HORDE_BRIDGE_API_KEY" in err
    assert horde.calls == []


def test_a_wrong_key_ends_with_the_hordes_words_and_the_remedy(horde: Stand) -> None:
    horde.script(POP, refusal(401, "InvalidAPIKey", "No user has that key."))

    code, out, err = finish(bridge(horde, "--backend", "demo"))

    assert code == 1
    assert "No user has that key. Check HORDE_BRIDGE_API_KEY or the file given by --api-key-file." in err
    assert KEY not in out + err


def test_once_serves_one_and_says_so_in_one_line(horde: Stand) -> None:
    horde.script(POP, popped(), popped("g-2"))

    code, _, err = finish(bridge(horde, "--backend", "demo", "--once"))

    assert code == 0
    assert [body["id"] for body in bodies(horde, SUBMIT)] == ["g-1"]
    assert err.count("g-1") == 1
    assert "generation g-1: reply of 54 characters in" in err
    assert err.count("\n") == 3  # the start, the generation, the end


def test_says_that_strict_requests_will_not_come_without_a_context_check(horde: Stand, backend: Stand) -> None:
    horde.script(POP, popped())

    code, _, err = finish(bridge(horde, "--backend-url", f"{backend.url}/v1", "--once"))

    assert code == 0
    assert "strict requests, the usual ones, will not come" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_bridge_stops_at_once(horde: Stand, number: signal.Signals) -> None:
    with start(bridge(horde, "--backend", "demo", "--poll-seconds", "60")) as process:
        horde.wait_for(lambda stand: bool(stand.calls_to(POP)))
        time.sleep(0.2)  # into the pause
        process.send_signal(number)
        _, err = process.communicate(timeout=3)

    assert process.returncode == 0
    assert "stopping: 0 generations have up to 30 seconds" in err


def test_a_stopping_bridge_finishes_what_it_serves(horde: Stand, backend: Stand) -> None:
    released = threading.Event()
    backend.script(COMPLETIONS, Response(body=stands.completion("Yes."), wait_for=released))
    horde.script(POP, popped(), popped("g-2"))

    with start(bridge(horde, "--backend-url", backend.url)) as process:
        backend.wait_for(lambda stand: bool(stand.calls_to(COMPLETIONS)))
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        released.set()
        process.communicate(timeout=5)

    assert process.returncode == 0
    assert [(body["id"], body["message"]["content"]) for body in bodies(horde, SUBMIT)] == [("g-1", "Yes.")]
    assert len(horde.calls_to(POP)) == 1


def test_a_stopping_bridge_hands_back_what_does_not_end_in_time(horde: Stand, backend: Stand) -> None:
    hangs = threading.Event()
    backend.script(COMPLETIONS, *[Response(body={}, wait_for=hangs)] * 2)
    horde.script(POP, popped("g-1"), popped("g-2"))

    with start(bridge(horde, "--backend-url", backend.url, "--threads", "2", "--grace-seconds", "0.5")) as process:
        backend.wait_for(lambda stand: len(stand.calls_to(COMPLETIONS)) == 2)
        stopped_at = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        seconds = time.monotonic() - stopped_at
    hangs.set()

    assert process.returncode == 0
    assert seconds >= 0.5
    assert sorted((body["id"], body["state"], body["fault_reason"]) for body in bodies(horde, SUBMIT)) == [
        ("g-1", "faulted", "generation_error"),
        ("g-2", "faulted", "generation_error"),
    ]


def test_a_pop_on_its_way_when_the_bridge_stops_is_still_served(horde: Stand) -> None:
    released = threading.Event()
    slow = popped()
    horde.script(POP, Response(body=slow.body, wait_for=released))

    with start(bridge(horde, "--backend", "demo")) as process:
        horde.wait_for(lambda stand: bool(stand.calls_to(POP)))
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        released.set()
        process.communicate(timeout=5)

    assert process.returncode == 0
    assert ["message" in body for body in bodies(horde, SUBMIT)] == [True]


def test_a_second_signal_leaves_at_once(horde: Stand, backend: Stand) -> None:
    hangs = threading.Event()
    backend.script(COMPLETIONS, Response(body={}, wait_for=hangs))
    horde.script(POP, popped())

    with start(bridge(horde, "--backend-url", backend.url)) as process:
        backend.wait_for(lambda stand: bool(stand.calls_to(COMPLETIONS)))
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=3)
    hangs.set()

    assert process.returncode == 128 + signal.SIGTERM
    assert horde.calls_to(SUBMIT) == []


def test_the_version_is_the_projects() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
