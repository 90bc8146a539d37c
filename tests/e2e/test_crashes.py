"""Whatever is killed in the middle: no accepted request is lost, none is paid twice."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from hordechat.local import postgresql, stack, valkey
from tests import services
from tests.e2e.conftest import LiveHorde, make_live_person
from tests.horde import Answer

pytestmark = pytest.mark.slow
CYCLES = 200
KILLS = 4


def patient(call: Callable[[], Answer]) -> Answer:
    """Repeat a call until the API answers it; a crash shows as a broken connection."""
    deadline = time.monotonic() + 90
    while True:
        try:
            status, body = call()
        except httpx2.TransportError:
            status, body = 503, {}
        if status not in {429, 502, 503}:
            return status, body
        assert time.monotonic() < deadline, "the API did not come back"
        time.sleep(0.1)


def test_killing_the_api_loses_no_accepted_request_and_pays_none_twice() -> None:
    url = services.clone_for("killed")
    environment = {"DATABASE_URL": url, "REDIS_URL": os.environ["REDIS_URL"], "HORDE_LOG_LEVEL": "ERROR"}
    requester = make_live_person(environment, "requester", "--kudos", "100000")
    owner = make_live_person(environment, "owner", "--trusted")
    accepted: set[str] = set()
    is_over = threading.Event()
    try:
        with (
            stack.api(environment) as api,
            LiveHorde(requester=requester, owner=owner, api=api, environment=environment) as live,
        ):

            def work(name: str) -> int:
                """Pop and reply until told to stop; a job whose pop was not heard of comes back with its lease."""
                served = 0
                while not is_over.is_set():
                    job = patient(lambda: live.pop(name=name))[1].get("id")
                    if job is None:
                        time.sleep(0.05)
                    elif patient(lambda job=job: live.reply(job))[1].get("rc") in {None, "DuplicateGen"}:  # type: ignore[misc]
                        served += 1
                return served

            def ask(_: int) -> None:
                # A submit whose answer was lost may be queued twice: it is another accepted request, paid by its own.
                accepted.add(patient(live.submit)[1]["id"])

            patient(lambda: live.pop(name="worker 0"))
            with ThreadPoolExecutor(8) as pool:
                workers = [pool.submit(work, f"worker {number}") for number in range(3)]
                asked = [pool.submit(ask, number) for number in range(CYCLES)]
                try:
                    # From the main thread: a child dies with the thread that started it.
                    for _ in range(KILLS):
                        time.sleep(1.0)
                        api.kill()
                        api.start()
                    for future in asked:
                        future.result(timeout=120)
                    deadline = time.monotonic() + 90
                    while True:
                        # What a killed pop took with it would lapse after 150 seconds; the test does not wait so long.
                        live.value(
                            "UPDATE processing_gens SET deadline = now() - interval '1 s' WHERE generation IS NULL"
                            " AND NOT faulted AND created < now() - interval '3 s' RETURNING 1"
                        )
                        done = stack.manage(environment, "shell", "-c", SWEEP)
                        assert done.returncode == 0, done.stderr
                        if live.value(UNSERVED) == 0:
                            break
                        assert time.monotonic() < deadline, "some accepted requests were not served"
                        time.sleep(0.5)
                finally:
                    is_over.set()
                assert sum(worker.result(timeout=90) for worker in workers) > 0

            assert (
                live.value("SELECT count(*) FROM waiting_prompts WHERE id = ANY(%s::uuid[])", list(accepted)) == CYCLES
            )
            assert live.value("SELECT coalesce(max(stored), 0) FROM (SELECT count(*) AS stored FROM processing_gens"
                              " WHERE generation IS NOT NULL GROUP BY request_id) AS counts") == 1  # fmt: skip
            paid = live.value("SELECT count(*) FROM transfers WHERE kind = 'reply'")
            assert paid == live.value("SELECT count(*) FROM processing_gens WHERE generation IS NOT NULL")
            assert paid == live.value("SELECT count(*) FROM transfers WHERE kind = 'tax'")
            assert live.reconcile()["sum"] == "0.00"
    finally:
        services.drop(url)


SWEEP = "from requests_app.tasks import abort_lapsed_leases; abort_lapsed_leases()"
UNSERVED = """
    SELECT count(*)
      FROM waiting_prompts AS request
     WHERE NOT EXISTS (
               SELECT 1
                 FROM processing_gens
                WHERE request_id = request.id
                  AND generation IS NOT NULL
           )
"""


def test_a_restarted_postgresql_and_a_stopped_redis_cost_no_500(tmp_path: Path) -> None:
    with (
        postgresql.running(tmp_path / "postgresql", durable=False) as database,
        valkey.running(tmp_path / "valkey") as cache,
    ):
        database.create_database("hordechat")
        environment = {
            "DATABASE_URL": database.url("hordechat"),
            "REDIS_URL": cache.url,
            "HORDE_LOG_LEVEL": "ERROR",
        }
        assert stack.manage(environment, "migrate", "-v0").returncode == 0
        requester = make_live_person(environment, "requester", "--kudos", "1000")
        owner = make_live_person(environment, "owner", "--trusted")
        with (
            stack.api(environment) as api,
            LiveHorde(requester=requester, owner=owner, api=api, environment=environment) as live,
        ):
            live.value("UPDATE users SET concurrency = 500 WHERE id = %s RETURNING 1", requester.id)
            live.pop()
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: live.status(live.submit()[1]["id"]), range(40)))
            database.restart()

            after_restart = [live.submit()[0] for _ in range(30)]

            assert set(after_restart) == {202}
            cache.stop()
            request_id = live.submit()[1]["id"]
            started = time.monotonic()
            answers = [live.submit()[0]]
            while (job := live.pop()[1]["id"]) is not None:
                answers.append(live.reply(job)[0])
            answers.append(live.cancel(request_id)[0])
            calls = 3 + 2 * (len(answers) - 2)
            assert set(answers) == {200, 202}
            # A dead Redis costs a time-out a second and process, not one a call.
            assert (time.monotonic() - started) / calls < 2
            ready = httpx2.get(f"{api.url}/healthz/ready")
            assert (ready.status_code, ready.json()["redis"]) == (200, "unreachable")
            cache.start()
            time.sleep(1.1)
            assert httpx2.get(f"{api.url}/healthz/ready").json()["redis"] == "ok"
