"""Measure what waiting workers cost: two hundred of them, each asking an empty queue every two seconds.

    python -m benchmarks.idle_workers

Starts the site as the cycle benchmark does, lets the workers poll over kept connections, and reports how many cores the
servers used meanwhile.
"""

import argparse
import http.client
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks import processor
from benchmarks.cycle import FAILED, INTERRUPTED, NotMeasured, Site, create_key, percentile, running_site
from benchmarks.driver import CALL_SECONDS

WORKERS_AN_OWNER = 20
"""An owner may have few more."""
WARM_UP_SECONDS = 6.0
MOST_CORES = 0.5


def poll(
    site: Site, *, key: str, number: int, every_seconds: float, stop: threading.Event
) -> list[tuple[float, float]]:
    """Pop as one worker until told to stop; return when each pop began and what it took, in seconds."""
    body = json.dumps(
        {
            "name": f"worker {number}",
            "models": [f"demo/{number % 10}"],
            "chat_jobs": True,
            "chat_features": ["prompt_overflow_refused"],
            "chat_limits": {"max_context_length": 8192, "max_length": 1024},
            "model_id": f"demo/{number % 10}",
        }
    )
    connection = http.client.HTTPConnection(site.host, site.port, timeout=CALL_SECONDS)
    pops: list[tuple[float, float]] = []
    # Their turns are spread over the pause, as those of programs started one by one are.
    turn = time.monotonic() + every_seconds * (number % 100) / 100
    while not stop.wait(max(turn - time.monotonic(), 0)):
        turn += every_seconds
        began = time.monotonic()
        connection.request(
            "POST", "/api/v2/generate/text/pop", body, {"apikey": key, "Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise NotMeasured(f"A pop was answered with {answer.status}.")
        pops.append((began, time.monotonic() - began))
    connection.close()
    return pops


def measure(site: Site, options: argparse.Namespace) -> float:
    """Print the figures and return how many cores API, PostgreSQL and Valkey used."""
    owners = -(-options.workers // WORKERS_AN_OWNER)
    keys = [create_key(site, f"owner {number}", "--trusted") for number in range(owners)]
    stop = threading.Event()
    with ThreadPoolExecutor(options.workers) as pool:
        running = [
            pool.submit(
                poll,
                site,
                key=keys[number // WORKERS_AN_OWNER],
                number=number,
                every_seconds=options.every,
                stop=stop,
            )
            for number in range(options.workers)
        ]
        try:
            time.sleep(WARM_UP_SECONDS)
            start, before = time.monotonic(), processor.read_seconds(site.process_ids)
            time.sleep(options.seconds)
            end, after = time.monotonic(), processor.read_seconds(site.process_ids)
        finally:
            stop.set()
        pops = [pop for each in running for pop in each.result()]
    taken = sorted(seconds for began, seconds in pops if start <= began <= end)
    cores = {name: (after[name] - before[name]) / (end - start) for name in after}
    print(
        f"{options.workers} workers, a pop each {options.every:g} s: {len(taken) / (end - start):.1f} pops a second, "
        f"p50 {percentile(taken, 50) * 1000:.1f} ms, p95 {percentile(taken, 95) * 1000:.1f} ms, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    print(", ".join(f"{name} {part:.2f}" for name, part in cores.items()) + f": {sum(cores.values()):.2f} cores in all")
    return sum(cores.values())


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.idle_workers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--workers", type=int, default=200, metavar="N", help="how many (200)")
    parser.add_argument("--every", type=float, default=2, metavar="S", help="the pause between two pops of one (2)")
    parser.add_argument("--seconds", type=float, default=20, metavar="S", help="measured time (20)")
    options = parser.parse_args(arguments)
    if min(options.workers, options.every, options.seconds) <= 0:
        parser.error("workers and times have to be above 0.")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Start the site, measure, report; return the exit status."""
    options = parse_arguments(arguments)
    try:
        with running_site(api_processes=2, api_threads=4, is_durable=True) as site:
            cores = measure(site, options)
    except KeyboardInterrupt:
        print("Interrupted; the servers are down.", file=sys.stderr)
        return INTERRUPTED
    return 0 if cores <= MOST_CORES else FAILED


if __name__ == "__main__":
    sys.exit(main())
