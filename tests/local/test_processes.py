"""Children that die with their parent."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hordechat.local import places, processes
from hordechat.local.processes import Child
from hordechat.local.refusals import Refused
from tests.local.conftest import descendants, runs, wait_until

PARENT = """
import sys, time
from pathlib import Path
from hordechat.local import postgresql, valkey
folder = Path(sys.argv[1])
with postgresql.running(folder / "pg", durable=False), valkey.running(folder / "valkey"):
    print("up", flush=True)
    time.sleep(60)
"""


def start(*command: str, log: Path | None = None) -> Child:
    return Child.start("child", command, environment=dict(os.environ), folder=Path("/"), log=log)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_servers_end_with_a_parent_that_is_killed(open_folder: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(places.PROJECT)}
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PARENT, open_folder], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        children = descendants(parent.pid)

        parent.send_signal(number)
        parent.wait()

    assert len(children) > 2
    assert wait_until(lambda: not any(runs(child) for child in children))


def test_stop_takes_everything_the_child_started_with_it() -> None:
    child = start("/bin/sh", "-c", "sleep 300 & sleep 300 & echo started; wait")
    assert wait_until(lambda: len(descendants(child.pid)) == 2)
    below = descendants(child.pid)

    child.stop()

    assert child.has_ended()
    assert wait_until(lambda: not any(runs(pid) for pid in below))


def test_stop_takes_what_a_child_left_behind_when_it_ended_by_itself() -> None:
    child = start("/bin/sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!")
    assert wait_until(child.has_ended)
    assert wait_until(lambda: bool(child.tail))
    left = int(child.tail[0])
    assert runs(left)

    child.stop()

    assert wait_until(lambda: not runs(left))


def test_stop_kills_a_child_that_does_not_listen() -> None:
    child = start("/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    assert wait_until(lambda: "ready" in child.tail)

    child.stop(patience_seconds=0.3)

    assert child.process.returncode == -signal.SIGKILL


def test_a_log_stays_within_its_bound(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    child = start("/bin/sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 10000000", log=log)
    assert wait_until(child.has_ended)
    child.stop()

    assert log.stat().st_size <= processes.LOG_FILE_BYTES + 100
    assert log.with_suffix(".old").stat().st_size <= processes.LOG_FILE_BYTES + 100
    assert len(child.tail) == processes.TAIL_LINES


def test_a_child_is_not_started_from_a_thread_that_may_end_first() -> None:
    raised: list[BaseException] = []

    def attempt() -> None:
        try:
            start("/bin/true")
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()

    assert len(raised) == 1


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(Refused, match=r"/nowhere/program cannot be run \(No such file or directory\)"):
        start("/nowhere/program")


def test_lines_are_shown_with_the_name_in_front(capfd: pytest.CaptureFixture[str]) -> None:
    child = start("/bin/sh", "-c", "read line; sleep 0.3; echo hello")
    child.is_shown = True
    assert wait_until(child.has_ended)
    child.stop()

    assert "child       | hello\n" in capfd.readouterr().out
