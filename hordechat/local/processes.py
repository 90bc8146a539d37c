"""Children that die with their parent, and their lines.

Each child leads a session of its own, so that Ctrl-C reaches the parent alone and the whole tree below a child can be
signalled at once. The kernel sends it its stop signal when the parent dies, however it dies.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from hordechat.local.refusals import Refused

TAIL_LINES = 40
LOG_FILE_BYTES = 4 * 1024 * 1024
NAME_WIDTH = 11
"""The longest name of a child, so that lines align."""

PR_SET_PDEATHSIG = 1

_printing = threading.Lock()
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def die_with_parent(stop_signal: signal.Signals) -> Callable[[], None]:
    """Return what a child has to do before it becomes its program, so that the kernel ends it with this process."""
    parent = os.getpid()

    def in_the_child() -> None:
        if _prctl is not None:
            _prctl(PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
            if os.getppid() != parent:  # it died before the line above
                os._exit(1)

    return in_the_child


@dataclass(frozen=True)
class Identity:
    """The user a child runs as, when that is not this one."""

    uid: int
    gid: int


class BoundedFile:
    """A log that never takes more than twice its bound: the part before the latest is kept as `.old`."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.written_bytes = 0
        self.file = path.open("wb") if path is not None else None

    def write(self, line: bytes) -> None:
        """Append a line; a full disk loses lines and stops nothing."""
        if self.file is None or self.path is None:
            return
        try:
            if self.written_bytes > LOG_FILE_BYTES:
                self.file.close()
                self.path.replace(self.path.with_suffix(".old"))
                self.file, self.written_bytes = self.path.open("wb"), 0
            self.written_bytes += self.file.write(line)
            self.file.flush()
        except OSError:
            self.file.close()
            self.file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()


@dataclass
class Child:
    """One started program, with everything it started itself."""

    name: str
    process: subprocess.Popen[bytes]
    stop_signal: signal.Signals
    log: Path | None = None
    is_shown: bool = False
    """Whether its lines go to the terminal as well."""
    awaited: str = ""
    """What a line says once the program is ready; for programs that cannot be asked."""
    was_seen: threading.Event = field(default_factory=threading.Event)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    _reader: threading.Thread | None = None

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        folder: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        identity: Identity | None = None,
        log: Path | None = None,
        inherited: Sequence[int] = (),
        awaited: str = "",
    ) -> Self:
        """Start a program that ends with this process.

        Raises:
            Refused: the program cannot be run.
        """
        # The kernel watches the thread that forks, not the process: a short-lived thread's children would die early.
        if threading.current_thread() is not threading.main_thread():
            message = "children are started from the main thread, whose end is the process's end"
            raise RuntimeError(message)
        try:
            process = subprocess.Popen(
                [str(part) for part in command],
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=inherited,
                preexec_fn=die_with_parent(stop_signal),  # noqa: PLW1509 - it calls one function loaded beforehand
                user=identity.uid if identity else None,
                group=identity.gid if identity else None,
                extra_groups=[] if identity else None,
            )
        except OSError as error:
            raise Refused(f"{command[0]} cannot be run ({error.strerror}).") from error
        child = cls(name=name, process=process, stop_signal=stop_signal, log=log, awaited=awaited)
        child._reader = threading.Thread(target=child._read_lines, name=f"lines of {name}", daemon=True)
        child._reader.start()
        return child

    @property
    def pid(self) -> int:
        """The process id of the program itself."""
        return self.process.pid

    def has_ended(self) -> bool:
        """Tell whether the program is over; what it started may still run until `stop`."""
        if self.process.returncode is not None:
            return True
        # Not reaped yet, so that its group's number cannot be given to a stranger before stop() signals the group.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def request_stop(self) -> None:
        """Ask the program to end, and return at once."""
        if not self.has_ended():
            self.process.send_signal(self.stop_signal)

    def stop(self, *, patience_seconds: float = 10) -> None:
        """End the program and everything it started: asked first, killed after the patience."""
        if self.process.returncode is not None:
            return
        self.request_stop()
        deadline = time.monotonic() + patience_seconds
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.kill()

    def kill(self) -> None:
        """Kill the program and everything it started."""
        if self.process.returncode is not None:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.wait()
        if self._reader is not None:
            self._reader.join(timeout=2)

    def last_lines(self) -> str:
        """Return the latest of what it printed, for a message."""
        return "".join(f"    {line}\n" for line in list(self.tail))

    def _read_lines(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 - it was started with a pipe
        with self.process.stdout as lines, BoundedFile(self.log) as file:
            for raw in lines:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                self.tail.append(line)
                file.write(raw)
                if self.awaited and self.awaited in line:
                    self.was_seen.set()
                if self.is_shown:
                    self._show(line)

    def _show(self, line: str) -> None:
        with _printing:
            try:
                print(f"{self.name:<{NAME_WIDTH}} | {line}", flush=True)
            except (OSError, ValueError):  # the terminal is gone; the files still get every line
                self.is_shown = False
