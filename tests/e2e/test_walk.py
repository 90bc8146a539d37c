"""The whole walk on real sockets against the real servers."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from hordechat.celery import app
from hordechat.local import stack
from tests.e2e.conftest import LiveHorde

CYCLES = 2000
RUNNERS = 4


def own_model() -> str:
    """Return a model no other test uses, so that tests of one site do not meet."""
    return f"test/{uuid4()}"


def poll_until_done(live: LiveHorde, request_id: str, *, seconds: float = 30) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status, body = live.status(request_id)
        assert status == 200
        if body["done"]:
            return body
        time.sleep(0.05)
    pytest.fail(f"the request was not done within {seconds} s: {body}")


@contextmanager
def demo_worker(live: LiveHorde) -> Iterator[str]:
    """Run the bridge with its demo backend and yield the model it serves."""
    model = own_model()
    command = ["-m", "workers_app.bridge", "--url", live.api.url, "--name", model]
    command += ["--backend", "demo", "--model", model]
    bridge = stack.Service("bridge", command, {**live.environment, "HORDE_BRIDGE_API_KEY": live.owner.api_key})
    bridge.start()
    try:
        yield model
    finally:
        bridge.stop()


def serve(live: LiveHorde, **asked: Any) -> dict[str, Any]:
    """Submit a request as soon as its worker is online, and return its status once it is done."""
    deadline = time.monotonic() + 20
    while (answer := live.submit(**asked))[0] != 202:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)
    return poll_until_done(live, answer[1]["id"])


def test_the_bridge_serves_a_request(live: LiveHorde) -> None:
    owner_before, requester_before = (
        live.value("SELECT posted_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", person.id)
        for person in (live.owner, live.requester)
    )
    with demo_worker(live) as model:
        body = serve(live, model=model)

    [generation] = body["generations"]
    assert "Hello there" in generation["text"]
    assert generation["finish_reason"] == "stop"
    owner, requester = (
        live.value("SELECT posted_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", person.id)
        for person in (live.owner, live.requester)
    )
    earned = owner - owner_before
    assert earned > 0
    assert requester_before - requester == earned + 2
    assert Decimal(str(body["kudos"])) == earned + 2
    assert live.reconcile()["sum"] == "0.00"


def test_the_bridge_serves_strict_schemas_and_forced_functions(live: LiveHorde) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Bern", "Zürich"]}, "degrees": {"type": "number"}},
        "required": ["city", "degrees"],
        "additionalProperties": False,
    }
    json_schema = {"name": "weather", "strict": True, "schema": schema}
    functions: list[dict[str, object]] = [
        {"type": "function", "function": {"name": "look_up"}},
        {"type": "function", "function": {"name": "forecast", "strict": True, "parameters": schema}},
    ]
    forced = {"type": "function", "function": {"name": "forecast"}}

    with demo_worker(live) as model:
        formatted = serve(live, model=model, response_format={"type": "json_schema", "json_schema": json_schema})
        called = serve(live, model=model, tools=functions, tool_choice=forced, parallel_tool_calls=False)

    [reply] = formatted["generations"]
    assert (reply["message"]["content"], reply["finish_reason"]) == ('{"city":"Bern","degrees":0}', "stop")
    [reply] = called["generations"]
    [call] = reply["message"]["tool_calls"]
    assert reply["message"]["content"] is None
    assert call["function"] == {"name": "forecast", "arguments": '{"city":"Bern","degrees":0}'}


def test_two_workers_racing_for_one_request(live: LiveHorde) -> None:
    model = own_model()
    names = [f"{model} {number}" for number in range(2)]
    for name in names:
        live.pop(name=name, models=[model], model_id=model)

    for _ in range(10):
        live.submit(model=model)
        with ThreadPoolExecutor(2) as pool:
            jobs = list(pool.map(lambda name: live.pop(name=name, models=[model], model_id=model)[1]["id"], names))
        assert sorted(job is None for job in jobs) == [False, True]


def test_two_equal_submits_of_one_reply(live: LiveHorde) -> None:
    model = own_model()
    declared: dict[str, Any] = {"name": model, "models": [model], "model_id": model}
    live.pop(**declared)

    for _ in range(10):
        live.submit(model=model)
        job = live.pop(**declared)[1]["id"]
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda _, job=job: live.reply(job, model_id=model), range(2)))
        assert sorted(body.get("rc", "stored") for _, body in answers) == ["DuplicateGen", "stored"]
        assert live.value("SELECT count(*) FROM transfers WHERE cause = %s AND kind = 'reply'", job) == 1


def test_a_celery_worker_aborts_a_lapsed_lease(live: LiveHorde, live_environment: dict[str, str]) -> None:
    model = own_model()
    declared: dict[str, Any] = {"name": model, "models": [model], "model_id": model}
    live.pop(**declared)
    request_id = live.submit(model=model)[1]["id"]
    job = live.pop(**declared)[1]["id"]
    live.value("UPDATE processing_gens SET deadline = now() - interval '1 s' WHERE id = %s RETURNING 1", job)

    with stack.celery_worker(live_environment, concurrency=1):
        app.send_task("requests_app.tasks.abort_lapsed_leases")
        deadline = time.monotonic() + 30
        while live.status(request_id)[1]["restarted"] == 0:
            assert time.monotonic() < deadline, "the task did not run"
            time.sleep(0.1)

    assert live.pop(**declared)[1]["id"] is not None


@pytest.mark.slow
def test_a_status_never_shows_done_without_its_generation(live: LiveHorde) -> None:
    def run_cycles(_: int) -> int:
        """Reply from one thread and read the status from another until it says done; return how often it was read."""
        model = own_model()
        declared: dict[str, Any] = {"name": model, "models": [model], "model_id": model}
        live.pop(**declared)
        reads = 0
        with ThreadPoolExecutor(1) as worker:
            for _ in range(CYCLES // RUNNERS):
                request_id = live.submit(model=model)[1]["id"]
                job = live.pop(**declared)[1]["id"]
                reply = worker.submit(live.reply, job, model_id=model)
                is_done = False
                while not is_done:
                    body = live.status(request_id)[1]
                    reads += 1
                    is_done = body["done"]
                    assert not is_done or body["finished"] == len(body["generations"]) == 1, body
                assert reply.result(timeout=30)[0] == 200
        return reads

    with ThreadPoolExecutor(RUNNERS) as runners:
        reads = sum(runners.map(run_cycles, range(RUNNERS)))

    assert reads >= CYCLES
