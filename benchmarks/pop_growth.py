"""Measure whether a pop grows with the queue: the same pops behind a hundred waiting requests and behind a million.

    python -m benchmarks.pop_growth

Starts a PostgreSQL of its own, fills its queue by SQL, and times pops in four situations at each length. Ratios to the
shortest queue are what counts: machines differ.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.cycle import FAILED, INTERRUPTED, percentile
from benchmarks.ledger import running_database

LENGTHS = (100, 10_000, 100_000, 1_000_000)
MOST_RATIO = 1.5
JUDGED_LENGTH = 100_000
"""The ratio is judged here; a million is shown."""

MODEL = "demo/echo"
WARM_UP_POPS = 20
UNSERVABLE_AHEAD = 10_000
"""Requests with a need the worker does not cover, ahead of everything it may take."""

GUARANTEE, GUARANTEE_MASK = "prompt_overflow_refused", 1 << 12
SEED_MASK = 1

FILL_REQUESTS = """
    INSERT INTO waiting_prompts (
        id, user_id, models, n, jobs, max_length, max_context_length, active, order_key, created, expiry, is_chat,
        messages, chat_required_features, feature_mask, consumed_kudos
    )
    SELECT gen_random_uuid(), 0, ARRAY[%(model)s]::varchar[], 1, 1, 64, 2048, true, %(order_key)s - number, now(),
           now() + interval '1 day', true, '[{"role": "user", "content": "Hello"}]', %(features)s::text[],
           %(feature_mask)s, 1
      FROM generate_series(1, %(count)s) AS number
"""
FILL_QUEUE = """
    INSERT INTO queue_rows (
        request_id, model, is_chat, feature_mask, order_key, created, max_length, max_context_length, user_id
    )
    SELECT id, models[1], is_chat, feature_mask, order_key, created, max_length, max_context_length, user_id
      FROM waiting_prompts
     WHERE NOT EXISTS (SELECT 1 FROM queue_rows WHERE request_id = id)
       AND n > 0
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One situation at one length of the queue."""

    situation: str
    queued: int
    p50_milliseconds: float
    p95_milliseconds: float
    ratio: float
    """Of its p50 to that behind the shortest queue."""


def _set_up(environment: Mapping[str, str]) -> None:
    os.environ.update(environment, DJANGO_SETTINGS_MODULE="hordechat.settings.django")
    import django  # noqa: PLC0415 - the settings read the environment when they are imported

    django.setup()


def _fill(count: int, *, order_key: int, features: list[str], feature_mask: int) -> None:
    from django.db import connection  # noqa: PLC0415 - needs the settings

    with connection.cursor() as cursor:
        cursor.execute(
            FILL_REQUESTS,
            {
                "count": count,
                "model": MODEL,
                "order_key": order_key,
                "features": features,
                "feature_mask": feature_mask,
            },
        )
        cursor.execute(FILL_QUEUE)
        cursor.execute("ANALYZE waiting_prompts, queue_rows")


def _empty(feature: str) -> None:
    """Take the requests that need a feature out of the queue again."""
    from django.db import connection  # noqa: PLC0415 - needs the settings

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM queue_rows WHERE feature_mask = %s", [SEED_MASK])
        cursor.execute("DELETE FROM waiting_prompts WHERE chat_required_features = ARRAY[%s]", [feature])
        cursor.execute("VACUUM ANALYZE waiting_prompts, queue_rows")


def _pop_once(api_key: str, body: Mapping[str, Any]) -> object:
    from hordechat.contract import pop as contract  # noqa: PLC0415 - needs the settings
    from hordechat.infra import clock  # noqa: PLC0415 - the same
    from requests_app.services import pop  # noqa: PLC0415 - the same

    return pop.assign_next(api_key=api_key, pop=contract.parse(body), address=None, now=clock.now())


def _explain(api_key: str, body: Mapping[str, Any]) -> None:
    """Print how PostgreSQL reads the candidates of a pop."""
    from django.db import connection  # noqa: PLC0415 - needs the settings
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415 - the same

    with CaptureQueriesContext(connection) as captured:
        _pop_once(api_key, body)
    [statement] = [query["sql"] for query in captured if query["sql"].startswith("-- candidates")]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) " + statement)
        print("\n".join(row[0] for row in cursor.fetchall()))


def _time(call: Callable[[], object], *, pops: int) -> list[float]:
    for _ in range(WARM_UP_POPS):
        call()
    seconds = []
    for _ in range(pops):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)


def measure(environment: Mapping[str, str], options: argparse.Namespace) -> list[Line]:
    """Return the lines, situation by situation, the lengths ascending."""
    _set_up(environment)
    from decimal import Decimal  # noqa: PLC0415 - beside what needs the settings

    from billing_app.services import accounts  # noqa: PLC0415 - needs the settings
    from hordechat.infra import clock  # noqa: PLC0415 - the same

    owner = accounts.create_user(alias="owner", kudos=Decimal(0), is_trusted=True, now=clock.now())
    worker: dict[str, Any] = {
        "name": "worker",
        "models": [MODEL],
        "chat_jobs": True,
        "prompt_jobs": False,
        "chat_features": ["prompt_overflow_refused"],
        "chat_limits": {"max_context_length": 8192, "max_length": 1024},
        "model_id": MODEL,
    }
    elsewhere = {**worker, "name": "elsewhere", "models": ["other/model"], "model_id": "other/model"}
    lacking = {**worker, "name": "lacking", "chat_features": []}
    situations: dict[str, Callable[[], object]] = {
        "with a job": lambda: _pop_once(owner.api_key, worker),
        "no matching model": lambda: _pop_once(owner.api_key, elsewhere),
        "nothing it may take": lambda: _pop_once(owner.api_key, lacking),
        f"behind {UNSERVABLE_AHEAD:,}": lambda: _pop_once(owner.api_key, worker),
    }
    found: dict[str, list[tuple[int, list[float]]]] = {name: [] for name in situations}
    spent = options.pops + WARM_UP_POPS
    waiting = 0
    for length in options.lengths:
        # What pops with a job take away is added before, so that the queue is never shorter than it is said to be.
        _fill(length + 2 * spent - waiting, order_key=-waiting, features=[GUARANTEE], feature_mask=GUARANTEE_MASK)
        waiting = length + 2 * spent
        for name, call in situations.items():
            is_behind = name.startswith("behind")
            if is_behind:
                _fill(UNSERVABLE_AHEAD, order_key=10**9, features=["seed"], feature_mask=SEED_MASK)
            found[name].append((length, _time(call, pops=options.pops)))
            if is_behind:
                _empty("seed")
        waiting -= 2 * spent
        if options.explain and length == options.lengths[-1]:
            _explain(owner.api_key, worker)
        print(f"measured at {length:,} queued", file=sys.stderr, flush=True)
    return [
        Line(
            situation=name,
            queued=length,
            p50_milliseconds=percentile(seconds, 50) * 1000,
            p95_milliseconds=percentile(seconds, 95) * 1000,
            ratio=percentile(seconds, 50) / percentile(lines[0][1], 50),
        )
        for name, lines in found.items()
        for length, seconds in lines
    ]


def report(lines: list[Line], options: argparse.Namespace) -> None:
    """Print the table."""
    if options.json:
        print(json.dumps([asdict(line) for line in lines]))
        return
    print(f"{options.pops} pops each, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print(f"{'':26}{'queued':>11}{'p50 ms':>9}{'p95 ms':>9}{'ratio':>8}")
    for line in lines:
        print(
            f"{line.situation:26}{line.queued:>11,}{line.p50_milliseconds:>9.2f}{line.p95_milliseconds:>9.2f}"
            f"{line.ratio:>8.2f}"
        )


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pop_growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pops", type=int, default=200, metavar="N", help="pops measured in each situation (200)")
    parser.add_argument(
        "--lengths",
        type=lambda text: tuple(int(part) for part in text.split(",")),
        default=LENGTHS,
        metavar="N,N…",
        help="how many requests wait, ascending (100,10000,100000,1000000)",
    )
    parser.add_argument("--explain", action="store_true", help="print the plan behind the longest queue too")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args(arguments)
    if options.pops <= 0 or list(options.lengths) != sorted(set(options.lengths)) or options.lengths[0] <= 0:
        parser.error("pops and lengths have to be above 0, and lengths ascend.")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Start PostgreSQL, measure, report; return the exit status."""
    options = parse_arguments(arguments)
    try:
        with running_database(is_durable=True) as environment:
            lines = measure(environment, options)
    except KeyboardInterrupt:
        print("Interrupted; PostgreSQL is down.", file=sys.stderr)
        return INTERRUPTED
    report(lines, options)
    judged = [line.ratio for line in lines if line.queued == JUDGED_LENGTH]
    return FAILED if judged and max(judged) > MOST_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
