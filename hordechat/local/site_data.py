"""What a local site keeps between starts: its secrets, accounts, database, logs, and the lock that says it runs."""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from hordechat.local import places, postgresql
from hordechat.local.refusals import DamagedData, Refused

MARKER = "hordechat-site"
LEFTOVER_SECONDS = 20
"""How long the processes of a killed server get to notice its end."""

FOLDERS = ("log", "metrics", "beat", "valkey")
FILES = ("credentials.json", "secrets.json", "server.json", "environment.json", "server.lock", MARKER)


@dataclass
class SiteData:
    """One folder of data, held by this process."""

    folder: Path
    lock: int
    secrets: dict[str, str] = field(repr=False)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Take a folder for this server alone, and make what is missing in it.

        Raises:
            Refused: a server runs on it, it has other things in it, or it is another user's.
            DamagedData: a file in it cannot be read.
        """
        lock = _take(folder)
        for name in FOLDERS:
            places.own(folder / name)
        for leftover in (folder / "metrics").iterdir():
            leftover.unlink()
        known = read_json(folder / "secrets.json")
        if not known:
            known = {"secret_key": secrets.token_urlsafe(48), "pepper": secrets.token_urlsafe(48)}
            places.write_privately(folder / "secrets.json", json.dumps(known, indent=2) + "\n")
        return cls(folder=folder, lock=lock, secrets=known)

    def close(self) -> None:
        """Give the folder back."""
        (self.folder / "server.json").unlink(missing_ok=True)
        (self.folder / "environment.json").unlink(missing_ok=True)
        os.close(self.lock)

    def announce(self, url: str) -> None:
        """Note who runs here, for the message another start gives."""
        note = {"pid": os.getpid(), "url": url}
        places.write_privately(self.folder / "server.json", json.dumps(note) + "\n")

    def publish(self, environment: Mapping[str, str]) -> None:
        """Leave the processes' environment for `script/manage`, for this user's eyes alone."""
        places.write_privately(self.folder / "environment.json", json.dumps(dict(environment)) + "\n")

    def log(self, name: str) -> Path:
        """Return the log file of a process."""
        return self.folder / "log" / f"{name}.log"


def find_environment(folder: Path) -> dict[str, str] | None:
    """Return the environment of the server that runs on a folder, or None when none does.

    Raises:
        DamagedData: its note is no JSON object.
    """
    # A killed server leaves its notes behind.
    if not _is_alive(int(read_json(folder / "server.json").get("pid", "0"))):
        return None
    return read_json(folder / "environment.json") or None


def require_free(folder: Path) -> None:
    """Make sure that a server could run on a folder, before anything long is done.

    Raises:
        Refused: as `SiteData.open` does.
    """
    os.close(_take(folder))


def remove(folder: Path) -> None:
    """Remove a site's data, wherever its database lives, and nothing else.

    Raises:
        Refused: a server runs on it, or the folder is not a site's.
    """
    if not folder.exists():
        return
    lock = _take(folder)
    try:
        postgresql.remove(folder / "postgresql")
        for name in FOLDERS:
            shutil.rmtree(folder / name, ignore_errors=True)
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
    finally:
        os.close(lock)


def _take(folder: Path) -> int:
    is_new = not folder.exists() or not any(folder.iterdir())
    if not is_new and folder != places.LOCAL and not (folder / MARKER).exists():
        raise Refused(
            f"{folder} has other things in it; --data takes a new or empty folder, or one of an earlier start."
        )
    places.own(folder, mode=places.TRAVERSABLE if os.geteuid() == 0 else places.PRIVATE)
    path = folder / "server.lock"
    lock = places.lock(path)
    if lock is None:
        note = read_json(folder / "server.json")
        # A killed server leaves its note behind, and processes that are about to end.
        if not _is_alive(int(note.get("pid", "0"))):
            lock = places.lock(
                path,
                patience_seconds=LEFTOVER_SECONDS,
                on_wait=lambda: print("Waiting for the processes of an earlier server to end …"),
            )
    if lock is None:
        where = f" at {note['url']} (process {note['pid']})" if note else ""
        raise Refused(f"A server already runs on {folder}{where}; stop it, or choose another folder with --data.")
    places.write_privately(folder / MARKER, "The data of a local hordechat; script/server --reset removes them.\n")
    return lock


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def read_json(path: Path) -> dict[str, str]:
    """Return a small file of the site, empty when there is none.

    Raises:
        DamagedData: it is no JSON object.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise damaged(path) from error
    if not isinstance(found, dict):
        raise damaged(path)
    return found


def damaged(path: Path) -> DamagedData:
    """Return the refusal for a file of the site that is not as it was written."""
    return DamagedData(
        f"{path} is damaged: `script/server --reset` removes the site's data, and the next start begins anew."
    )
