"""Folders of the local stack: whose they are, who can reach them, and where sockets find a short enough path."""

import fcntl
import hashlib
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hordechat.local.refusals import Refused

PROJECT = Path(__file__).resolve().parent.parent.parent
LOCAL = PROJECT / ".local"

PRIVATE = 0o700
TRAVERSABLE = 0o711
"""Others may pass through to a folder of their own, and see nothing."""

SOCKET_PATH_BYTES = 107
"""The kernel's bound on the path of a unix socket."""


def own(folder: Path, *, mode: int = PRIVATE) -> Path:
    """Make a folder that is this user's own, or take one that already is, and return it.

    Raises:
        Refused: it is another user's, no folder, or cannot be made.
    """
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise Refused(f"{folder} is not a plain folder; move it away and start again.")
        if found.st_uid != os.geteuid():
            raise Refused(
                f"{folder} belongs to the user {user_name(found.st_uid)} and this is {user_name(os.geteuid())}; "
                f"run the command as {user_name(found.st_uid)}, or remove that folder."
            )
        if stat.S_IMODE(found.st_mode) != mode:
            folder.chmod(mode)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Refused(f"{folder} cannot be written to; run the command from a folder on a writable disk.")
    except OSError as error:
        raise Refused(
            f"{folder} cannot be made ({error.strerror}); run the command as the owner of {folder.parent}, "
            "or from a clone in a folder of your own."
        ) from error
    return folder


def user_name(uid: int) -> str:
    """Return the name of a user for a message; its number when it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def shown(path: Path) -> Path:
    """Return a path as short as someone at the terminal can use it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def is_reachable_by_all(folder: Path) -> bool:
    """Tell whether every user may pass through the folder and all above it."""
    resolved = folder.resolve()
    return all(place.stat().st_mode & stat.S_IXOTH for place in (resolved, *resolved.parents))


def outside(folder: Path) -> Path:
    """Return the place under /var/tmp that stands in for a folder which others cannot reach."""
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return Path("/var/tmp") / f"hordechat-{digest}"  # noqa: S108 - owner-checked by own() before any use


def for_sockets(folder: Path, longest_name: str) -> Path:
    """Return a folder for unix sockets: inside the given one, or in the temporary folder when its path is too long."""
    inside = folder / "run"
    if len(os.fsencode(inside / longest_name)) < SOCKET_PATH_BYTES:
        return inside
    return Path(tempfile.gettempdir()) / f"{outside(folder).name}-run"


def lock(
    path: Path, *, shared: bool = False, patience_seconds: float = 0, on_wait: Callable[[], None] | None = None
) -> int | None:
    """Lock a file and return its descriptor, or None when another process still has it after the patience.

    The lock lasts until every process that inherited the descriptor is gone, so it outlives a parent that was killed.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            if on_wait is not None:
                on_wait()
                on_wait = None
            time.sleep(0.1)
        else:
            return descriptor


def write_privately(path: Path, text: str) -> None:
    """Replace a file whole, readable by its owner alone, or leave it as it was."""
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
