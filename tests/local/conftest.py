"""What the tests of the local stack share: a clean environment, a copy of the scripts, a look at what runs."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hordechat.local import places

SETTINGS = ("DATABASE_URL", "REDIS_URL", "HORDE_SECRET_KEY", "HORDE_API_KEY_PEPPERS", "PYTHONPATH")
GONE_SECONDS = 15

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files and programs to another user")


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of someone who has set nothing of the project's."""
    return {name: value for name, value in os.environ.items() if name not in SETTINGS}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder every user can pass through, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="horde-t-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what a first start needs before packages are there."""
    copy = tmp_path / "project"
    (copy / "hordechat").mkdir(parents=True)
    shutil.copy(places.PROJECT / "hordechat" / "__init__.py", copy / "hordechat")
    for part in ("hordechat/local", "script", "requirements"):
        shutil.copytree(places.PROJECT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def descendants(pid: int) -> set[int]:
    """Return every process below one, by the kernel's own list."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it ended while the list was read
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def wait_until(condition: Callable[[], bool], *, seconds: float = GONE_SECONDS) -> bool:
    """Wait for a condition and tell whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def runs(pid: int) -> bool:
    """Tell whether a process is alive and not merely unburied."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False
