"""The virtual environment `.venv`: made from the hash-locked requirements, and made anew when they change.

A stamp inside `.venv`, written last, says what it was made of. Two locks keep commands of one clone apart: one while
packages are installed, one (shared) for as long as a command runs on them.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hordechat.local import places
from hordechat.local.processes import die_with_parent
from hordechat.local.refusals import Refused
from hordechat.local.steps import step, talkative_step

REQUIREMENTS = places.PROJECT / "requirements"
SERVER = ("base", "local")
TESTS = ("base", "local", "dev")

STAMP = "hordechat-stamp.json"
ENTERED = "HORDE_LOCAL_ENVIRONMENT_LOCK"
"""Tells the second run, inside `.venv`, which descriptor holds the lock on it."""

INSTALL_WAIT_SECONDS = 600


def enter(module: str, groups: Sequence[str]) -> None:
    """Return inside `.venv`: the first call makes it if need be and runs the module again with its Python.

    Raises:
        Refused: the environment cannot be made here.
    """
    inherited = os.environ.pop(ENTERED, None)
    if inherited is not None:
        os.set_inheritable(int(inherited), False)
        return
    environment = Environment(places.PROJECT / ".venv")
    lock = environment.prepare(groups)
    os.set_inheritable(lock, True)
    sys.stdout.flush()
    os.execve(  # noqa: S606 - this very command again, with the packages
        environment.python,
        [str(environment.python), "-P", "-s", "-m", module, *sys.argv[1:]],
        {**os.environ, ENTERED: str(lock)},
    )


@dataclass(frozen=True)
class Environment:
    """A virtual environment of this clone."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter in it."""
        return self.folder / "bin" / "python"

    def prepare(self, groups: Sequence[str]) -> int:
        """Bring it to the locked requirements of these groups and return the descriptor of a lock that keeps it so.

        Raises:
            Refused: it cannot be made, or others still use the one to be replaced.
        """
        places.own(places.LOCAL, mode=places.TRAVERSABLE if os.geteuid() == 0 else places.PRIVATE)
        installing = places.lock(
            places.LOCAL / "install.lock",
            patience_seconds=INSTALL_WAIT_SECONDS,
            on_wait=lambda: print("Waiting for another command of this folder to finish its installation …"),
        )
        if installing is None:
            raise Refused(
                "Another command of this folder has been installing for ten minutes; stop it and start again."
            )
        try:
            if self._missing(groups) is None:
                self._remove()
            missing = self._missing(groups)
            if not self.folder.exists():
                self._make()
                missing = list(groups)
                self._stamp(())
            if missing:
                self._install(missing)
                self._stamp(groups)
            use = places.lock(self._use_lock, shared=True)
            assert use is not None  # noqa: S101 - only the holder of the installation lock takes it exclusively
            return use
        finally:
            os.close(installing)

    @property
    def _use_lock(self) -> Path:
        return places.LOCAL / f"use-of-{self.folder.name.strip('.')}.lock"

    def _missing(self, groups: Sequence[str]) -> list[str] | None:
        """Return the groups still to be installed; None when the environment cannot be used at all."""
        try:
            stamp = json.loads((self.folder / STAMP).read_text(encoding="utf-8"))
            locks = dict(stamp["locks"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        is_sound = stamp.get("project") == str(places.PROJECT) and stamp.get("python") == _describe(self.python)
        has_changed = any(locks[group] != _digest(group) for group in groups if group in locks)
        if not is_sound or has_changed:
            return None
        return [group for group in groups if group not in locks]

    def _remove(self) -> None:
        if self.folder.is_symlink():
            raise Refused(f"{self.folder} is a link; remove it, and the command makes a real one.")
        if not self.folder.exists():
            return
        places.own(self.folder, mode=self.folder.stat().st_mode & 0o777)
        exclusive = places.lock(self._use_lock)
        if exclusive is None:
            raise Refused(
                f"The requirements have changed and another command still runs on {self.folder.name}; "
                "stop that command and start again."
            )
        try:
            with step(f"Removing {self.folder.name}, which was made of other packages or is unfinished"):
                shutil.rmtree(self.folder)
        finally:
            os.close(exclusive)

    def _make(self) -> None:
        if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
            raise Refused(
                "This Python cannot make a virtual environment because its venv module is not installed; "
                "on Debian and Ubuntu: apt install python3-venv"
            )
        with step(f"Making {self.folder.name} with Python {sys.version.split()[0]}"):
            answer = subprocess.run(
                [sys.executable, "-s", "-m", "venv", self.folder],
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        if answer.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise Refused(
                f"{self.folder} could not be made ({_last_line(answer.stdout + answer.stderr)}); "
                "on Debian and Ubuntu: apt install python3-venv"
            )

    def _install(self, missing: Sequence[str]) -> None:
        files = [part for group in missing for part in ("-r", str(REQUIREMENTS / f"{group}.txt"))]
        with talkative_step(f"Installing the locked packages ({', '.join(missing)})"):
            if not (files and self._install_with_uv(files)) and not self._pip("install", "--no-deps", *files):
                raise Refused(
                    "The packages could not be installed, as the lines above say; "
                    "check the network (or pip's index setting) and start again."
                )

    def _stamp(self, groups: Sequence[str]) -> None:
        stamp = {
            "python": _describe(self.python),
            "project": str(places.PROJECT),
            "locks": {group: _digest(group) for group in groups},
        }
        places.write_privately(self.folder / STAMP, json.dumps(stamp, indent=2) + "\n")

    def install_uv(self) -> bool:
        """Put the pinned uv into the environment; false when it cannot be had here."""
        if (self.folder / "bin" / "uv").exists():
            return True
        return self._pip("install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS / "bootstrap.txt"))

    def _install_with_uv(self, files: Sequence[str]) -> bool:
        if self.install_uv():
            command = [str(self.folder / "bin" / "uv"), "pip", "install", "--python", str(self.python)]
            # Its progress is for someone who watches; a log gains nothing from a list of what the lock already says.
            command += [] if sys.stderr.isatty() else ["--quiet"]
            installed = subprocess.run(
                [*command, "--require-hashes", "--no-deps", *files],
                env=self.index_settings(),
                stdin=subprocess.DEVNULL,
                check=False,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
            if installed.returncode == 0:
                return True
        print("  uv is of no use here; pip does the same from the same lock, in about a minute …")
        return False

    def index_settings(self) -> dict[str, str]:
        """Return an environment in which uv trusts what the system trusts and uses the index pip is configured for."""
        settings = {"UV_SYSTEM_CERTS": "1", **_clean_environment()}
        command = [str(self.python), "-m", "pip", "config", "list"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, env=_clean_environment())
        for line in answer.stdout.splitlines():
            name, _, value = line.partition("=")
            if name.endswith(".index-url"):
                return {"UV_DEFAULT_INDEX": value.strip("'\""), **settings}
        return settings

    def _pip(self, *arguments: str) -> bool:
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
        installed = subprocess.run(
            [*command, "--require-hashes"],
            env=_clean_environment(),
            stdin=subprocess.DEVNULL,
            check=False,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        return installed.returncode == 0


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}


def _describe(python: Path) -> str:
    """Return the interpreter's place and version; empty when it cannot run any more."""
    try:
        command = [str(python), "-I", "-c", "import sys; print(sys.version)"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return f"{python.resolve()} {answer.stdout.strip()}" if answer.returncode == 0 else ""


def _digest(group: str) -> str:
    return hashlib.sha256((REQUIREMENTS / f"{group}.txt").read_bytes()).hexdigest()


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]
