"""Measure the ledger alone: how many posts a second one hot account takes, and how long reconciling is.

    python -m benchmarks.ledger

Starts a PostgreSQL of its own, with an empty database, and takes it down. Each post is a transaction as a reply has it:
one payer, one owner, the burn. On the hot account all of them have the same payer; otherwise each draws one of many.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.cycle import FAILED, INTERRUPTED, NotMeasured, manage, percentile
from hordechat.local import places, postgresql

POSTS_A_CYCLE = 2
"""A request's tax, and a reply's charge."""

START_KUDOS = Decimal(1_000_000_000)
FILL_BATCH_TRANSFERS = 1000
WARM_UP_SECONDS = 1.0
START_SECONDS = 60.0
LEAST_RATIO = 0.8
MOST_RECONCILE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What the threads of one measurement do."""

    name: str
    payers: list[int]
    owners: list[int]
    threads: int
    """Of all processes together."""
    start: float
    end: float
    posts_a_second: float | None
    """What all threads together do at most; None for as many as they can."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One line of the table."""

    name: str
    posts: int
    per_second: float
    p50_milliseconds: float
    p95_milliseconds: float
    p99_milliseconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that was measured."""

    lines: list[Figures]
    unbounded_ratio: float
    """Posts a second of one account, over those of many."""
    paced_ratio: float
    """The same at the rate the HTTP stack reaches."""
    transfers: int
    reconcile_seconds: float
    ledger: str

    @property
    def is_within_bounds(self) -> bool:
        """Whether one hot account keeps up with the HTTP stack, and reconciling ends in time."""
        return self.paced_ratio >= LEAST_RATIO and self.reconcile_seconds < MOST_RECONCILE_SECONDS


def _set_up(environment: Mapping[str, str]) -> None:
    os.environ.update(environment, DJANGO_SETTINGS_MODULE="hordechat.settings.django")
    import django  # noqa: PLC0415 - the settings read the environment when they are imported

    django.setup()


def _post(name: str, *, payer: int, owner: int) -> None:
    """Charge and pay one reply in a transaction of its own."""
    from django.db import transaction  # noqa: PLC0415 - needs the settings

    from billing_app.rules.accounts import HouseAccount, TransferKind  # noqa: PLC0415 - the same
    from billing_app.services import ledger  # noqa: PLC0415 - the same
    from hordechat.infra import clock  # noqa: PLC0415 - the same

    with transaction.atomic(durable=True):
        ledger.post(
            [
                ledger.NewTransfer(f"reply:{name}", payer, owner, Decimal("12.34"), TransferKind.REPLY),
                ledger.NewTransfer(f"burn:{name}", payer, HouseAccount.BURN, Decimal(1), TransferKind.BURN),
            ],
            now=clock.now(),
        )


def post_until_the_end(
    environment: Mapping[str, str], plan: Plan, numbers: range, connection: Connection
) -> None:  # pragma: no cover - runs in a process of its own
    """Post from one thread for each number and send the seconds each post took, those of the warm-up left out."""
    _set_up(environment)

    def run(number: int) -> list[float]:
        dice = random.Random(number)
        taken: list[float] = []
        turn = 0
        while True:
            if plan.posts_a_second is not None:
                # Each thread has its turns in a fixed time table, and makes up for those it missed.
                time.sleep(max(plan.start + (turn * plan.threads + number) / plan.posts_a_second - time.monotonic(), 0))
            turn += 1
            began = time.monotonic()
            if began >= plan.end:
                return taken
            payer, owner = dice.choice(plan.payers), dice.choice(plan.owners)
            _post(f"{plan.name}:{number}:{turn}", payer=payer, owner=owner)
            if began >= plan.start + WARM_UP_SECONDS:
                taken.append(time.monotonic() - began)

    with ThreadPoolExecutor(len(numbers)) as pool:
        time.sleep(max(plan.start - time.monotonic(), 0))
        connection.send([seconds for part in pool.map(run, numbers) for seconds in part])


def open_accounts(
    environment: Mapping[str, str], count: int, connection: Connection
) -> None:  # pragma: no cover - runs in a process of its own
    """Make users with more kudos than they can spend, and send the ids of their balances."""
    _set_up(environment)
    from billing_app.models import Account  # noqa: PLC0415 - needs the settings
    from billing_app.services import accounts  # noqa: PLC0415 - the same
    from hordechat.infra import clock  # noqa: PLC0415 - the same

    users = [accounts.create_user(alias="payer", kudos=START_KUDOS, now=clock.now()).id for _ in range(count)]
    connection.send(
        list(Account.objects.filter(user_id__in=users, kind="balance").order_by("id").values_list("id", flat=True))
    )


def fill(
    environment: Mapping[str, str], account_ids: list[int], count: int, connection: Connection
) -> None:  # pragma: no cover - runs in a process of its own
    """Post until the ledger has this many transfers, and send how many it has."""
    _set_up(environment)
    from django.db import transaction  # noqa: PLC0415 - needs the settings

    from billing_app.models import Transfer  # noqa: PLC0415 - the same
    from billing_app.rules.accounts import TransferKind  # noqa: PLC0415 - the same
    from billing_app.services import ledger  # noqa: PLC0415 - the same
    from hordechat.infra import clock  # noqa: PLC0415 - the same

    dice = random.Random(1)
    missing = count - Transfer.objects.count()
    for first in range(0, missing, FILL_BATCH_TRANSFERS):
        numbers = range(first, min(first + FILL_BATCH_TRANSFERS, missing))
        with transaction.atomic(durable=True):
            ledger.post(
                [
                    ledger.NewTransfer(
                        f"fill:{number}",
                        dice.choice(account_ids),
                        dice.choice(account_ids),
                        Decimal(dice.randint(1, 9999)) / 100,
                        TransferKind.REPLY,
                    )
                    for number in numbers
                ],
                now=clock.now(),
            )
    connection.send(Transfer.objects.count())


def in_a_process(body: object, *arguments: object) -> Any:
    """Run a body in a process of its own, which may set Django up, and return what it sent.

    Raises:
        NotMeasured: it sent nothing.
    """
    return in_processes(body, [arguments])[0]


def in_processes(body: object, calls: list[tuple[object, ...]]) -> list[Any]:
    """Run a body once for each tuple of arguments, all at once, and return what each sent.

    Raises:
        NotMeasured: one of them sent nothing.
    """
    # Not fork: a child would inherit the launcher's handle on the server.
    context = multiprocessing.get_context("spawn")
    processes, receivers = [], []
    for arguments in calls:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=body, args=(*arguments, sender))  # type: ignore[arg-type]
        process.start()
        sender.close()
        processes.append(process)
        receivers.append(receiver)
    try:
        return [receiver.recv() for receiver in receivers]
    except EOFError:
        raise NotMeasured("A process ended without its figures; its error is printed above.") from None
    finally:
        for process in processes:
            process.join(timeout=START_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


@contextlib.contextmanager
def running_database(*, is_durable: bool) -> Iterator[dict[str, str]]:
    """Start PostgreSQL on an empty database with the project's tables; give the environment that reaches it."""
    # Not the temporary folder, which may be in memory: a durable commit has to wait for a disk.
    places.LOCAL.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=places.LOCAL) as name:
        folder = Path(name)
        try:
            with postgresql.running(folder / "postgresql", durable=is_durable, log=folder / "postgresql.log") as server:
                server.create_database("benchmark")
                environment = {
                    "DATABASE_URL": server.url("benchmark"),
                    # Nothing here asks Redis; the settings want an address.
                    "REDIS_URL": f"unix://{folder}/no-redis.sock",
                    "HORDE_SECRET_KEY": secrets.token_hex(32),
                    "HORDE_API_KEY_PEPPERS": f"benchmark:{secrets.token_hex(32)}",
                    "HORDE_DATABASE_POOL_SIZE": "0",
                    "HORDE_LOG_LEVEL": "WARNING",
                }
                manage(environment, "migrate")
                yield environment
        finally:
            postgresql.remove(folder / "postgresql")


def measure_posts(
    environment: Mapping[str, str],
    options: argparse.Namespace,
    *,
    name: str,
    payers: list[int],
    owners: list[int],
    posts_a_second: float | None = None,
) -> Figures:
    """Post from all processes and threads for the asked time."""
    # Long enough for the processes to import Django.
    start = time.monotonic() + 5
    plan = Plan(
        name=name,
        payers=payers,
        owners=owners,
        threads=options.processes * options.threads,
        start=start,
        end=start + WARM_UP_SECONDS + options.seconds,
        posts_a_second=posts_a_second,
    )
    calls: list[tuple[object, ...]] = [
        (environment, plan, range(first, first + options.threads)) for first in range(0, plan.threads, options.threads)
    ]
    sent = in_processes(post_until_the_end, calls)
    times = sorted(seconds * 1000 for part in sent for seconds in part)
    return Figures(
        name=name,
        posts=len(times),
        per_second=len(times) / options.seconds,
        p50_milliseconds=percentile(times, 50),
        p95_milliseconds=percentile(times, 95),
        p99_milliseconds=percentile(times, 99),
    )


def measure(environment: Mapping[str, str], options: argparse.Namespace) -> int:
    """Run all measurements and print them; return the exit status, 1 when a bound is missed."""
    opened = in_a_process(open_accounts, environment, 2 * options.accounts + 1)
    hot, payers, owners = opened[:1], opened[1 : options.accounts + 1], opened[options.accounts + 1 :]
    rate = options.cycles_per_second * POSTS_A_CYCLE
    lines = [
        measure_posts(environment, options, name="one account, unbounded", payers=hot, owners=owners),
        measure_posts(environment, options, name=f"{len(payers)} accounts, unbounded", payers=payers, owners=owners),
        measure_posts(
            environment, options, name=f"one account, {rate:g} a second", payers=hot, owners=owners, posts_a_second=rate
        ),
        measure_posts(
            environment,
            options,
            name=f"{len(payers)} accounts, {rate:g} a second",
            payers=payers,
            owners=owners,
            posts_a_second=rate,
        ),
    ]
    transfers = in_a_process(fill, environment, opened, options.transfers)
    began = time.monotonic()
    # With drift the command fails, and the measurement with it.
    reconciled = manage(environment, "ledger", "reconcile").strip()
    outcome = Outcome(
        lines=lines,
        unbounded_ratio=lines[0].per_second / max(lines[1].per_second, 1e-9),
        paced_ratio=lines[2].per_second / max(lines[3].per_second, 1e-9),
        transfers=transfers,
        reconcile_seconds=time.monotonic() - began,
        ledger=reconciled,
    )
    if options.json:
        print(
            json.dumps(
                {"options": vars(options), "cores": os.cpu_count(), "load": os.getloadavg()[0], **asdict(outcome)}
            )
        )
    else:
        print_report(outcome, options)
    return 0 if outcome.is_within_bounds else FAILED


def print_report(outcome: Outcome, options: argparse.Namespace) -> None:
    """Print the figures for a person."""
    print(
        f"{options.processes} x {options.threads} threads, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"PostgreSQL {'durable' if options.durable else 'not durable'}, {options.seconds:g} s each\n"
    )
    print(f"{'':28}{'posts':>8}{'a second':>11}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}")
    for line in outcome.lines:
        print(
            f"{line.name:28}{line.posts:>8}{line.per_second:>11.1f}{line.p50_milliseconds:>9.1f}"
            f"{line.p95_milliseconds:>9.1f}{line.p99_milliseconds:>9.1f}"
        )
    print(
        f"\none account / many: {outcome.unbounded_ratio:.2f} unbounded, {outcome.paced_ratio:.2f} at "
        f"{options.cycles_per_second * POSTS_A_CYCLE:g} posts a second"
    )
    print(f"reconciled in {outcome.reconcile_seconds:.2f} s, the command's start included: {outcome.ledger}")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ledger", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="processes that post (2)")
    parser.add_argument("--threads", type=int, default=4, metavar="N", help="threads of each, one connection each (4)")
    parser.add_argument("--accounts", type=int, default=64, metavar="N", help="payers, and as many owners (64)")
    parser.add_argument("--seconds", type=float, default=8, metavar="S", help="measured time of each line (8)")
    parser.add_argument(
        "--cycles-per-second", type=float, default=110, metavar="N", help="what the HTTP stack reaches (110)"
    )
    parser.add_argument("--transfers", type=int, default=100_000, metavar="N", help="what is reconciled (100000)")
    parser.add_argument(
        "--durable",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether a commit waits for the disk, as in production (it does)",
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args(arguments)
    if min(options.processes, options.threads, options.accounts, options.seconds, options.cycles_per_second) <= 0:
        parser.error("processes, threads, accounts, seconds and cycles have to be above 0.")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Start PostgreSQL, measure, report; return the exit status."""
    options = parse_arguments(arguments)
    try:
        with running_database(is_durable=options.durable) as environment:
            return measure(environment, options)
    except KeyboardInterrupt:
        print("Interrupted; PostgreSQL is down.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
