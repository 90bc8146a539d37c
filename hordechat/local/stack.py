"""The processes of hordechat on given databases: the API, Celery's worker and beat, and the demo worker.

Each is a context manager that waits until its process is ready, for tests and benchmarks:

    with stack.api({"DATABASE_URL": …, "REDIS_URL": …, "HORDE_SECRET_KEY": …, "HORDE_API_KEY_PEPPERS": …}) as api:
        requests.get(api.url + "/healthz/live")
"""

import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hordechat.local import places, ports
from hordechat.local.processes import Child, die_with_parent
from hordechat.local.refusals import Refused

READY_SECONDS = 90
POLL_SECONDS = 0.1
REQUEST_SECONDS = 10
CONNECTIONS_PER_PROCESS = 512
"""How many connections a process keeps before granian takes no more. Each bridge keeps one, and it counts while nothing
is asked on it; what is asked waits for a thread."""

GRANIAN = ("--interface", "wsgi", "--host", ports.HOST, "--no-ws", "--respawn-failed-workers")
WORKER_KILL_SECONDS = 5
"""How long a stopping API process waits for a request that does not end."""


class Service:
    """One process of hordechat that can be stopped, killed and started again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        *,
        log: Path | None = None,
        inherited: Sequence[int] = (),
        awaited: str = "",
    ) -> None:
        self.name = name
        self._command = [sys.executable, *command]
        self._environment = process_environment(environment)
        self._log = log
        self._inherited = inherited
        self._awaited = awaited
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        """The running process."""
        if self._child is None:
            message = f"{self.name} is stopped"
            raise RuntimeError(message)
        return self._child

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self._child = Child.start(
            self.name,
            self._command,
            environment=self._environment,
            folder=places.PROJECT,
            log=self._log,
            inherited=self._inherited,
            awaited=self._awaited,
        )

    def wait(self) -> None:
        """Wait until the launched process is ready.

        Raises:
            Refused: it ended, or took too long; the message has its last lines.
        """
        deadline = time.monotonic() + READY_SECONDS
        while not self.is_ready():
            if self.child.has_ended() or time.monotonic() > deadline:
                what = "ended at its start" if self.child.has_ended() else f"was not ready in {READY_SECONDS} s"
                self.child.kill()
                raise Refused(f"{self.name} {what}; its last lines:\n{self.child.last_lines()}")
            time.sleep(POLL_SECONDS)

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        self.launch()
        self.wait()

    def request_stop(self) -> None:
        """Ask the process to end, and return at once."""
        if self._child is not None:
            self._child.request_stop()

    def stop(self) -> None:
        """End the process and everything it started."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def kill(self) -> None:
        """Kill the process and everything it started, as a crash would."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def is_ready(self) -> bool:
        """Tell whether the process does its work by now."""
        return not self._awaited or self.child.was_seen.is_set()


class Api(Service):
    """The HTTP API on a port of its own, which it keeps through stops and starts."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        port: int,
        workers: int = 2,
        threads: int = 4,
        log: Path | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        self.port = port
        self.url = f"http://{ports.HOST}:{port}"
        self.instance_id = secrets.token_hex(8)
        command = ["-m", "granian", *GRANIAN, "--port", str(port), "--workers", str(workers)]
        command += ["--blocking-threads", str(threads), "--backpressure", str(CONNECTIONS_PER_PROCESS)]
        command += ["--workers-kill-timeout", str(WORKER_KILL_SECONDS), "hordechat.wsgi:application"]
        own = {"HORDE_PORT": str(port), "HORDE_URL": self.url, "HORDE_INSTANCE_ID": self.instance_id}
        pool = {"HORDE_DATABASE_POOL_SIZE": str(threads)}
        super().__init__("api", command, {**pool, **environment, **own}, log=log, inherited=inherited)

    def is_ready(self) -> bool:
        """Tell whether this very instance answers on the port."""
        try:
            status, answer = get_json(self.port, "/healthz/live")
        except (OSError, http.client.HTTPException, ValueError):
            return False
        return status == http.HTTPStatus.OK and answer.get("instance") == self.instance_id


def get_json(port: int, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, object]]:
    """Ask the local API and return the status and the JSON object it answers with."""
    return send_json(port, "GET", path, None, headers or {})


def send_json(
    port: int, method: str, path: str, body: object | None, headers: Mapping[str, str]
) -> tuple[int, dict[str, object]]:
    """Send one request to the local API, past any proxy, and return the status and the JSON object of the answer."""
    connection = http.client.HTTPConnection(ports.HOST, port, timeout=REQUEST_SECONDS)
    try:
        payload = None if body is None else json.dumps(body)
        content = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, payload, {**content, **headers})
        response = connection.getresponse()
        answer = json.loads(response.read())
        return response.status, answer if isinstance(answer, dict) else {}
    finally:
        connection.close()


def celery_worker_service(
    environment: Mapping[str, str], *, concurrency: int = 2, log: Path | None = None, inherited: Sequence[int] = ()
) -> Service:
    """Describe Celery's worker."""
    command = ["-m", "celery", "-A", "hordechat.celery:app", "worker", "--concurrency", str(concurrency)]
    command += ["--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    return Service("celery", command, environment, log=log, inherited=inherited, awaited=" ready.")


def celery_beat_service(
    environment: Mapping[str, str], *, schedule: Path, log: Path | None = None, inherited: Sequence[int] = ()
) -> Service:
    """Describe Celery's beat, which keeps its times in the file `schedule`."""
    command = ["-m", "celery", "-A", "hordechat.celery:app", "beat", "--loglevel", "INFO", "--pidfile="]
    command += ["--schedule", str(schedule)]
    return Service("beat", command, environment, log=log, inherited=inherited, awaited="beat: Starting")


def demo_worker_service(
    environment: Mapping[str, str], *, url: str, api_key: str, log: Path | None = None, inherited: Sequence[int] = ()
) -> Service:
    """Describe the worker that serves the model demo/echo."""
    command = ["-m", "workers_app.bridge", "--url", url, "--name", "demo worker"]
    command += ["--backend", "demo", "--model", "demo/echo"]
    own = {"HORDE_BRIDGE_API_KEY": api_key}
    return Service("demo worker", command, {**environment, **own}, log=log, inherited=inherited)


@contextmanager
def api(
    environment: Mapping[str, str], *, workers: int = 2, threads: int = 4, log: Path | None = None
) -> Iterator[Api]:
    """Run the API on a free port, with `workers` processes of `threads` threads."""
    port = ports.free_port()
    service = Api(environment, port=port, workers=workers, threads=threads, log=log)
    try:
        with _running(service):
            yield service
    finally:
        ports.release(port)


@contextmanager
def celery_worker(
    environment: Mapping[str, str], *, concurrency: int = 2, log: Path | None = None
) -> Iterator[Service]:
    """Run Celery's worker with that many processes."""
    with _running(celery_worker_service(environment, concurrency=concurrency, log=log)) as service:
        yield service


@contextmanager
def celery_beat(environment: Mapping[str, str], *, schedule: Path, log: Path | None = None) -> Iterator[Service]:
    """Run Celery's beat, which keeps its times in the file `schedule`."""
    with _running(celery_beat_service(environment, schedule=schedule, log=log)) as service:
        yield service


@contextmanager
def demo_worker(
    environment: Mapping[str, str], *, url: str, api_key: str, log: Path | None = None
) -> Iterator[Service]:
    """Run the demo worker against the API at `url`."""
    with _running(demo_worker_service(environment, url=url, api_key=api_key, log=log)) as service:
        yield service


@contextmanager
def _running(service: Service) -> Iterator[Service]:
    try:
        service.start()
        yield service
    finally:
        service.stop()


def manage(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a management command and return what it answered."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        env=process_environment(environment),
        cwd=places.PROJECT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )


def process_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with the given variables, less what could lead PostgreSQL's client astray."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**inherited, "PYTHONUNBUFFERED": "1", "DJANGO_SETTINGS_MODULE": "hordechat.settings.django", **environment}
