"""Measure full cycles: a client submits a chat request, a worker pops and answers it, the client reads its reply.

    python -m benchmarks.cycle --clients 8 --workers 8 --seconds 20

Starts a stack of its own, with an empty database, drives it over HTTP, and takes it down. The driver runs on the same
machine, so the figures are of server and driver together; `docs/performance.md` says what to compare them with.
"""

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path

from benchmarks import processor
from benchmarks.driver import CALL_SECONDS, CYCLE, ROUTES, SERVED_SECONDS, Plan, Record, drive_clients, drive_workers
from hordechat.local import places, ports, postgresql, stack, valkey

MODEL = "benchmark/echo"
START_KUDOS = 1_000_000
WORKERS_AN_OWNER = 20
"""A trusted owner may have this many workers."""

FAULTS_SHOWN = 20

INTERRUPTED = 130
FAILED = 1


@dataclass(frozen=True, slots=True)
class Site:
    """A running stack: where its API listens, and the environment its commands need."""

    host: str
    port: int
    environment: Mapping[str, str]
    process_ids: dict[str, int]
    """The servers' main processes, whose processor time is counted with that of all they start."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One line of the table: how often, and how long it took."""

    route: str
    count: int
    per_second: float
    p50_milliseconds: float
    p95_milliseconds: float
    p99_milliseconds: float
    max_milliseconds: float


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a run that counts, after the warm-up."""

    start: float
    end: float
    processor: dict[str, float]
    """Processor seconds each server, and the driver, took in it."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


class NotMeasured(SystemExit):
    """The stack or the run is not fit to be measured; the message says why, and the exit status is 1."""


@contextlib.contextmanager
def running_site(*, api_processes: int, api_threads: int, is_durable: bool) -> Iterator[Site]:
    """Start PostgreSQL, Valkey and the API on an empty database; take them down and remove everything afterwards.

    Celery is not started: no cycle waits for a periodic task.
    """
    # Not the temporary folder, which may be in memory: a durable commit has to wait for a disk.
    places.LOCAL.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=places.LOCAL) as name:
        folder = Path(name)
        try:
            with (
                postgresql.running(folder / "postgresql", durable=is_durable, log=folder / "postgresql.log") as server,
                valkey.running(folder / "valkey", log=folder / "valkey.log") as redis,
            ):
                server.create_database("benchmark")
                environment = {
                    "DATABASE_URL": server.url("benchmark"),
                    "REDIS_URL": redis.url,
                    "HORDE_SECRET_KEY": secrets.token_hex(32),
                    "HORDE_API_KEY_PEPPERS": f"benchmark:{secrets.token_hex(32)}",
                    # One address stands for all clients here.
                    "HORDE_RATE_LIMITS_ENABLED": "false",
                    "HORDE_LOG_LEVEL": "WARNING",
                }
                manage(environment, "migrate")
                with stack.api(environment, workers=api_processes, threads=api_threads, log=folder / "api.log") as api:
                    yield Site(
                        host=ports.HOST,
                        port=api.port,
                        environment=environment,
                        process_ids={"API": api.child.pid, "PostgreSQL": server.child.pid, "Valkey": redis.child.pid},
                    )
        finally:
            # As root the data may live outside the folder, and durable ones stay until they are removed.
            postgresql.remove(folder / "postgresql")


def manage(environment: Mapping[str, str], *arguments: str) -> str:
    """Run one management command against the stack and return what it printed.

    Raises:
        NotMeasured: the command did not succeed.
    """
    run = stack.manage(environment, *arguments)
    if run.returncode != 0:
        raise NotMeasured(f"manage.py {' '.join(arguments)} failed.\n{run.stdout}{run.stderr}")
    return run.stdout


def create_key(site: Site, name: str, *options: str) -> str:
    """Make a user and return the API key."""
    printed = manage(site.environment, "create_user", name, "--kudos", str(START_KUDOS), "--json", *options)
    return str(json.loads(printed)["api_key"])


class Run:
    """One measurement: two driver processes, their start, their end, and what they saw."""

    def __init__(
        self, plan: Plan, *, client_keys: list[str], worker_keys: list[str], process_ids: dict[str, int]
    ) -> None:
        self._plan = plan
        self._process_ids = {**process_ids, "driver": os.getpid()}
        self._client_keys = client_keys
        self._worker_keys = worker_keys
        # Not fork: a child would inherit the launcher's handles on the servers.
        self._context: SpawnContext = multiprocessing.get_context("spawn")
        self._stop_clients = self._context.Event()
        self._stop_workers = self._context.Event()
        self._processes: list[SpawnProcess] = []

    def measure(self, *, warm_up_seconds: float, seconds: float) -> tuple[Window, Record]:
        """Drive the stack; return the window that counts, with its processor time, and everything both sides saw.

        Raises:
            NotMeasured: the workers were not welcome, or a driver died.
        """
        try:
            ready = self._context.Semaphore(0)
            from_workers = self._start(
                drive_workers, "workers", self._plan, self._worker_keys, ready, self._stop_workers
            )
            for _ in self._worker_keys:
                if not ready.acquire(timeout=CALL_SECONDS):
                    self._stop_workers.set()
                    seen = self._receive(from_workers)
                    raise NotMeasured(f"A worker's pop was not answered with 200: {dict(seen.errors)}.")

            start = time.monotonic() + warm_up_seconds
            end = start + seconds
            from_clients = self._start(drive_clients, "clients", self._plan, self._client_keys, end, self._stop_clients)
            _sleep_until(start)
            before = processor.read_seconds(self._process_ids)
            _sleep_until(end)
            after = processor.read_seconds(self._process_ids)
            window = Window(start=start, end=end, processor={name: after[name] - before[name] for name in after})
            record = self._receive(from_clients, within_seconds=2 * SERVED_SECONDS)
            self._stop_workers.set()
            record.merge(self._receive(from_workers))
            return window, record
        finally:
            self._end()

    def _start(self, body: object, name: str, *arguments: object) -> Connection:
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=body, args=(*arguments, sender), name=name)  # type: ignore[arg-type]
        process.start()
        sender.close()
        self._processes.append(process)
        return receiver

    def _receive(self, pipe: Connection, *, within_seconds: float = CALL_SECONDS + 5) -> Record:
        try:
            if pipe.poll(within_seconds):
                record = pipe.recv()
                if isinstance(record, Record):
                    return record
        except EOFError:
            pass
        raise NotMeasured("A driver process ended without its figures; its error is printed above.")

    def _end(self) -> None:
        """Stop what still runs, so that the servers are taken down with nobody calling."""
        self._stop_clients.set()
        self._stop_workers.set()
        for process in self._processes:
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()


def _sleep_until(moment: float) -> None:
    time.sleep(max(moment - time.monotonic(), 0))


def percentile(ordered: list[float], percent: float) -> float:
    """Return the smallest value that at least this part of the values do not exceed; 0 for none."""
    if not ordered:
        return 0.0
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def summarise(record: Record, window: Window) -> list[Figures]:
    """Return one line a route, of the calls that ended inside the window."""
    lines = []
    for route in ROUTES:
        times = sorted(
            seconds * 1000 for ended_at, seconds in record.samples[route] if window.start <= ended_at < window.end
        )
        lines.append(
            Figures(
                route=route,
                count=len(times),
                per_second=len(times) / window.seconds,
                p50_milliseconds=percentile(times, 50),
                p95_milliseconds=percentile(times, 95),
                p99_milliseconds=percentile(times, 99),
                max_milliseconds=times[-1] if times else 0.0,
            )
        )
    return lines


def list_faults(record: Record) -> list[str]:
    """Return one sentence for each promise that was not kept; none means that every request was served once."""
    faults = [f"{count} times {error}." for error, count in sorted(record.errors.items())]
    for request_id, mark in record.accepted.items():
        content = record.answered.get(request_id)
        if content is None:
            faults.append(f"Request {request_id} was accepted and has no reply.")
        elif content.rstrip(".") != mark:
            faults.append(f"Request {request_id} got the reply of another.")
    handed_out = Counter(mark for _, mark in record.popped)
    faults += [f"The request marked {mark} was handed out {n} times." for mark, n in handed_out.items() if n != 1]
    unasked = handed_out.keys() - set(record.accepted.values())
    faults += [f"A worker got {mark}, which no client asked." for mark in sorted(unasked)]
    if len(record.stored) != len(record.accepted):
        faults.append(f"{len(record.accepted)} requests were accepted and {len(record.stored)} replies stored.")
    return faults


def print_table(lines: list[Figures]) -> None:
    """Print the figures for a person."""
    print(f"{'':10}{'count':>9}{'a second':>11}{'p50 ms':>10}{'p95 ms':>10}{'p99 ms':>10}{'max ms':>10}")
    for line in lines:
        print(
            f"{line.route:10}{line.count:>9}{line.per_second:>11.1f}{line.p50_milliseconds:>10.1f}"
            f"{line.p95_milliseconds:>10.1f}{line.p99_milliseconds:>10.1f}{line.max_milliseconds:>10.1f}"
        )


def measure(site: Site, options: argparse.Namespace) -> int:
    """Make the users, drive the stack, check what came of it, and print the figures; return the exit status."""
    requesters = options.requesters or options.clients
    keys = [create_key(site, f"requester{number}") for number in range(1, requesters + 1)]
    owners = math.ceil(options.workers / WORKERS_AN_OWNER)
    owner_keys = [create_key(site, f"owner{number}", "--trusted") for number in range(1, owners + 1)]
    plan = Plan(
        host=site.host,
        port=site.port,
        model=MODEL,
        max_tokens=options.max_tokens,
        reply_characters=options.reply_characters,
        poll_seconds=options.poll_seconds,
        idle_seconds=options.idle_seconds,
    )
    run = Run(
        plan,
        client_keys=[keys[number % requesters] for number in range(options.clients)],
        worker_keys=[owner_keys[number % owners] for number in range(options.workers)],
        process_ids=site.process_ids,
    )
    window, record = run.measure(warm_up_seconds=options.warm_up_seconds, seconds=options.seconds)
    lines = summarise(record, window)
    cycles = next(line for line in lines if line.route == CYCLE)
    shares = {name: seconds * 1000 / max(cycles.count, 1) for name, seconds in window.processor.items()}
    faults = list_faults(record)
    ledger = manage(site.environment, "ledger", "reconcile").strip()

    if options.json:
        print(
            json.dumps(
                {
                    "options": vars(options),
                    "cores": os.cpu_count(),
                    "figures": [asdict(line) for line in lines],
                    "processor_milliseconds_a_cycle": shares,
                    "served": len(record.answered),
                    "faults": faults,
                    "ledger": ledger,
                }
            )
        )
    else:
        print_report(options, lines=lines, shares=shares, served=len(record.answered), faults=faults, ledger=ledger)
    return FAILED if faults else 0


def print_report(
    options: argparse.Namespace,
    *,
    lines: list[Figures],
    shares: Mapping[str, float],
    served: int,
    faults: list[str],
    ledger: str,
) -> None:
    """Print what was run, the figures and the checks."""
    print(
        f"{options.clients} clients, {options.workers} workers, API {options.api_processes} x {options.api_threads} "
        f"threads, {os.cpu_count()} cores with the driver on them, "
        f"PostgreSQL {'durable' if options.durable else 'not durable'}, {options.seconds:g} s measured\n"
    )
    print_table(lines)
    cycles = next(line for line in lines if line.route == CYCLE)
    print(f"\n{cycles.per_second:.1f} cycles a second")
    print("Processor ms a cycle: " + ", ".join(f"{name} {share:.2f}" for name, share in shares.items()))
    print(f"{served} requests served once each, warm-up included" if not faults else f"{len(faults)} faults:")
    for fault in faults[:FAULTS_SHOWN]:
        print(f"  {fault}")
    print(ledger)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cycle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=8, metavar="N", help="clients, one request in flight each (8)")
    parser.add_argument("--workers", type=int, default=8, metavar="N", help="workers, one generation each (8)")
    parser.add_argument("--requesters", type=int, metavar="N", help="users the clients share (one for each client)")
    parser.add_argument("--seconds", type=float, default=20, metavar="S", help="measured time (20)")
    parser.add_argument("--warm-up-seconds", type=float, default=4, metavar="S", help="time before it, not counted (4)")
    parser.add_argument("--api-processes", type=int, default=2, metavar="N", help="processes of the API (2)")
    parser.add_argument("--api-threads", type=int, default=4, metavar="N", help="threads in each of them (4)")
    parser.add_argument("--max-tokens", type=int, default=64, metavar="N", help="max_tokens of a request (64)")
    parser.add_argument(
        "--reply-characters", type=int, default=256, metavar="N", help="length of a reply, at least 32 (256)"
    )
    parser.add_argument(
        "--poll-seconds", type=float, default=0.01, metavar="S", help="a client's pause before a status read (0.01)"
    )
    parser.add_argument(
        "--idle-seconds", type=float, default=0.01, metavar="S", help="a worker's mean pause after an empty pop (0.01)"
    )
    parser.add_argument(
        "--durable",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether PostgreSQL waits for the disk at each commit, as in production (yes)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    options = parser.parse_args(arguments)
    if min(options.clients, options.workers, options.api_processes, options.api_threads) < 1 or options.seconds <= 0:
        parser.error("clients, workers, processes, threads and seconds have to be above 0.")
    if options.requesters is not None and not 1 <= options.requesters <= options.clients:
        parser.error("--requesters has to be between 1 and the number of clients.")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Start a stack, measure, check, report; return the exit status."""
    options = parse_arguments(arguments)
    try:
        with running_site(
            api_processes=options.api_processes, api_threads=options.api_threads, is_durable=options.durable
        ) as site:
            return measure(site, options)
    except KeyboardInterrupt:
        print("Interrupted; the stack is down.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
