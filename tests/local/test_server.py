"""script/server as a newcomer runs it: from a fresh clone, with everything it starts and stops."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hordechat.local import places, ports
from tests.local.conftest import descendants, needs_root, runs, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOBODY = 65534
START_SECONDS = 300


def clone(into: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", places.PROJECT, into], check=True)
    return into


def check(project: Path, environment: dict[str, str], uid: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [project / "script" / "server", "--check"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        user=uid,
        group=uid,
        extra_groups=[] if uid is not None else None,
    )


def require_success(started: subprocess.Popen[str], project: Path) -> None:
    output, _ = started.communicate()
    assert started.returncode == 0, output
    assert "The check passed" in output
    assert not list((project / ".local").glob("check-*"))
    assert not list(processes_of(project))


def processes_of(project: Path) -> Iterator[int]:
    """Find what runs from or in a folder, whoever its parent is."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(project) in words:
            yield int(process.name)


def test_checks_pass_in_two_fresh_clones_at_once(
    tmp_path: Path, open_folder: Path, environment: dict[str, str]
) -> None:
    tmp_path.chmod(0o700)  # as root: out of reach for the user PostgreSQL runs as
    projects = [clone(tmp_path / "one"), clone(open_folder / "two")]

    started = [check(project, environment) for project in projects]

    for process, project in zip(started, projects, strict=True):
        require_success(process, project)


@needs_root
def test_check_passes_for_an_ordinary_user(open_folder: Path, environment: dict[str, str]) -> None:
    system_path = "/usr/local/bin:/usr/bin:/bin"
    if shutil.which("python3", path=system_path) is None:
        pytest.skip("an ordinary user of this machine has no Python")
    project = clone(open_folder / "home" / "clone")
    for path in (open_folder / "home", *(open_folder / "home").rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    theirs = {**environment, "PATH": system_path, "HOME": str(open_folder / "home")}

    require_success(check(project, theirs, uid=NOBODY), project)


def test_a_killed_server_leaves_nothing_and_starts_again_in_maintenance(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    data = tmp_path / "data"
    command = [str(places.PROJECT / "script" / "server"), "--data", str(data), "--port", str(free_port())]
    for attempt in ("first", "second"):
        with subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as server:
            assert server.stdout is not None
            output = ""
            for line in server.stdout:
                output += line
                if "Ctrl-C stops everything" in line:
                    break
            assert ("One chat request" in output) == (attempt == "first"), output
            assert ("The demo request was not served." in output) == (attempt == "second")
            assert ("Accounts made by this start" in output) == (attempt == "first")
            below = descendants(server.pid)

            # The second time at once, while what the first left is still ending.
            if attempt == "first":
                manage = str(places.PROJECT / "script" / "manage")
                subprocess.run([manage, "--data", str(data), "maintenance", "on"], check=True, env=environment)
                server.kill()
            else:
                server.terminate()
                server.stdout.read()

        assert server.returncode == (-9 if attempt == "first" else 0)
        if attempt == "second":
            assert not any(runs(pid) for pid in below)
        else:
            left = below
    assert len(left) > 8
    assert wait_until(lambda: not any(runs(pid) for pid in left))
    subprocess.run([*command[:3], "--reset"], check=True, env=environment)
    assert not data.exists()


def free_port() -> int:
    port = ports.free_port()
    ports.release(port)
    return port
