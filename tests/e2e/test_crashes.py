"""Whatever is killed in the middle: no accepted request is lost, none is paid twice."""

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from django.conf import settings

from hordechat.celery import app
from hordechat.contract.limits import FAULTED_GENERATIONS_LIMIT
from hordechat.local import postgresql, stack, valkey
from tests import services
from tests.e2e.conftest import LiveHorde, make_live_person
from tests.horde import Answer

pytestmark = pytest.mark.slow
CYCLES = 500
KILLS = 4
"""Of the API, and as many of Celery's worker."""
DROPPED, REFUSED, GIVEN_UP = 0.05, 0.1, 0.25
"""Up to which chance a job is not heard of again, is refused and given up, or given up."""


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


@dataclass
class Crew:
    """Workers of all kinds at one site: most reply, some give up and say why, some are refused, some are lost."""

    live: LiveHorde
    is_over: threading.Event = field(default_factory=threading.Event)
    explained: set[str] = field(default_factory=set)
    """The generations whose worker was heard when it said why it gave up."""

    def work(self, number: int) -> int:
        """Pop until told to stop, and return how many replies were taken; what is lost comes back by its lease."""
        draw = random.Random(number)
        served = 0
        while not self.is_over.is_set():
            job = patient(lambda: self.live.pop(name=f"worker {number}"))[1].get("id")
            if job is None:
                time.sleep(0.05)
            else:
                served += self._serve(job, draw.random())
        return served

    def _serve(self, job: str, chance: float) -> bool:
        if chance < DROPPED:
            return False
        if chance < REFUSED:
            patient(lambda: self.live.reply(job, finish_reason="tired"))
        if chance < GIVEN_UP:
            if patient(lambda: self.live.fault(job, fault_reason="generation_error"))[0] == 200:
                self.explained.add(job)
            return False
        return patient(lambda: self.live.reply(job))[1].get("rc") in {None, "DuplicateGen"}


def test_killing_api_and_celery_loses_no_accepted_request_and_pays_none_twice(tmp_path: Path) -> None:
    url = services.clone_for("killed")
    environment = {"DATABASE_URL": url, "HORDE_LOG_LEVEL": "ERROR", "REDIS_URL": os.environ["REDIS_URL"]}
    requester = make_live_person(environment, "requester", "--kudos", "1000000")
    owner = make_live_person(environment, "owner", "--trusted")
    accepted: set[str] = set()
    try:
        with (
            valkey.running(tmp_path / "valkey") as cache,
            stack.api(environment | {"REDIS_URL": cache.url}) as api,
            stack.celery_worker(environment | {"REDIS_URL": cache.url, "HORDE_LOG_LEVEL": "INFO"}) as celery,
            LiveHorde(
                requester=requester, owner=owner, api=api, environment=environment | {"REDIS_URL": cache.url}
            ) as live,
        ):
            crew = Crew(live)

            def ask() -> None:
                # A submit whose answer was lost may be queued twice: it is another accepted request, paid by its own.
                accepted.add(patient(live.submit)[1]["id"])

            live.value("UPDATE users SET concurrency = %s WHERE id = %s RETURNING 1", CYCLES, requester.id)
            patient(lambda: live.pop(name="worker 0"))
            with ThreadPoolExecutor(8) as pool:
                workers = [pool.submit(crew.work, number) for number in range(4)]
                asked: list[Future[None]] = []
                try:
                    # From the main thread: a child dies with the thread that started it.
                    victims = random.Random(1).sample([api, celery] * KILLS, 2 * KILLS)
                    for number, victim in enumerate(victims):
                        # A share of the requests for each crash, which comes in the middle of them.
                        asked += [pool.submit(ask) for _ in range(number, CYCLES, len(victims))]
                        time.sleep(0.5)
                        victim.kill()
                        victim.start()
                        sweep(live)
                    for future in asked:
                        future.result(timeout=120)
                    deadline = time.monotonic() + 90
                    while live.value(OPEN) > 0:
                        assert time.monotonic() < deadline, f"no end of {live.value(OPEN)} requests; {live.value(CREW)}"
                        sweep(live)
                        time.sleep(0.5)
                finally:
                    crew.is_over.set()
                    pool.shutdown(wait=False, cancel_futures=True)
                assert sum(worker.result(timeout=90) for worker in workers) > CYCLES / 2
            assert_all_is_well(live, accepted, crew)
    finally:
        services.drop(url)


def sweep(live: LiveHorde) -> None:
    """Let the leases of the last seconds' generations lapse, as 150 seconds would, and have Celery look for them."""
    live.value(
        "UPDATE processing_gens SET deadline = now() - interval '1 s' WHERE generation IS NULL"
        " AND NOT faulted AND created < now() - interval '3 s' RETURNING 1"
    )
    # These workers give up more than 20 jobs an hour: their owner ends the maintenance that comes of it.
    live.value("UPDATE workers SET maintenance = false, aborts_since = aborts_since - interval '2 h' RETURNING 1")
    site = settings.HORDE.model_copy(update={"redis_url": live.environment["REDIS_URL"]})
    with app.connection_for_write(site.broker_url) as broker:
        app.send_task("requests_app.tasks.abort_lapsed_leases", connection=broker)


def assert_all_is_well(live: LiveHorde, accepted: set[str], crew: Crew) -> None:
    kept = live.value("SELECT count(*) FROM waiting_prompts WHERE id = ANY(%s::uuid[])", list(accepted))
    assert kept == len(accepted) == CYCLES
    statuses = [live.status(request_id)[1] for request_id in accepted]
    assert all(status["done"] for status in statuses)
    assert all(status["finished"] == (0 if status["faulted"] else 1) for status in statuses)
    # A faulted request says why, unless none of its workers was heard to.
    told = zip(accepted, statuses, strict=True)
    silent = [request_id for request_id, status in told if status["faulted"] and status["fault_reason"] is None]
    assert not live.value(EXPLAINED, list(crew.explained), silent)
    assert live.value("SELECT coalesce(max(faulted_jobs), 0) FROM waiting_prompts") <= FAULTED_GENERATIONS_LIMIT + 1
    stored = live.value("SELECT count(*) FROM processing_gens WHERE generation IS NOT NULL")
    assert stored == live.value("SELECT count(DISTINCT request_id) FROM processing_gens WHERE generation IS NOT NULL")
    assert stored == live.value("SELECT count(*) FROM transfers WHERE kind = 'reply'")
    assert live.value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == live.value(
        "SELECT count(*) FROM waiting_prompts"
    )
    assert live.value("SELECT sum(held_kudos) FROM accounts") == 0
    assert live.reconcile()["sum"] == "0.00"


OPEN = """
    SELECT count(*)
      FROM waiting_prompts
     WHERE NOT faulted
       AND (n > 0 OR id IN (SELECT request_id FROM processing_gens WHERE generation IS NULL AND NOT faulted))
"""
CREW = """
    SELECT json_agg(json_build_object('name', name, 'maintenance', maintenance, 'given_up', aborted_jobs))
      FROM workers
"""
EXPLAINED = "SELECT count(*) FROM processing_gens WHERE id = ANY(%s::uuid[]) AND request_id = ANY(%s::uuid[])"


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
