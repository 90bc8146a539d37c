"""The clients and workers of a load measurement: threads that speak the wire contract and keep the time of each call.

Standard library only, and a process of its own for each side, so that the driver's own cost stays small and even.
"""

import http.client
import json
import random
import signal
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event, Semaphore
from typing import Any

CALL_SECONDS = 30
"""No call of the API may take this long; one that does is an error, not a slow sample."""

SERVED_SECONDS = 60
"""How long a client waits for its reply before the request counts as not served."""

SUBMIT = "submit"
POP = "pop"
IDLE_POP = "idle pop"
REPLY = "reply"
STATUS = "status"
CYCLE = "cycle"
ROUTES = (SUBMIT, POP, IDLE_POP, REPLY, STATUS, CYCLE)

CAPABILITIES = (
    "tool_choice_enforced",
    "single_tool_call_enforced",
    "structured_output_enforced",
    "prompt_overflow_refused",
    "seed",
    "tools",
    "json_object",
    "json_schema",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What both sides of a run agree on."""

    host: str
    port: int
    model: str
    max_tokens: int
    reply_characters: int
    poll_seconds: float
    idle_seconds: float


@dataclass(slots=True)
class Record:
    """What one side saw: the time of each call, every answer it had not asked for, and what it was promised."""

    samples: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {route: [] for route in ROUTES})
    errors: Counter[str] = field(default_factory=Counter)
    accepted: dict[str, str] = field(default_factory=dict)
    """Clients: the id of each accepted request, with the mark its messages carried."""
    answered: dict[str, str] = field(default_factory=dict)
    """Clients: the id of each request that was done, with the content of its one reply."""
    popped: list[tuple[str, str]] = field(default_factory=list)
    """Workers: the id of each generation handed out, with the mark its messages carried."""
    stored: list[str] = field(default_factory=list)
    """Workers: the id of each generation whose reply was accepted."""

    def merge(self, other: "Record") -> None:
        """Take over what another thread or process saw."""
        for route, samples in other.samples.items():
            self.samples[route] += samples
        self.errors += other.errors
        self.accepted |= other.accepted
        self.answered |= other.answered
        self.popped += other.popped
        self.stored += other.stored


class Caller:
    """One kept connection to the API; opens another one when the server closes it."""

    def __init__(self, plan: Plan, *, api_key: str, record: Record) -> None:
        self._plan = plan
        self._headers = {
            "apikey": api_key,
            "Client-Agent": "hordechat-benchmark:1:unknown",
            "Content-Type": "application/json",
        }
        self._record = record
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, path: str, body: dict[str, object] | None = None) -> tuple[int, dict[str, Any], float]:
        """Make one call and return its status, its body and its seconds. Status 0 means that there was no answer."""
        content = None if body is None else json.dumps(body).encode()
        started = time.monotonic()
        try:
            connection = self._connection or self._connect()
            connection.request(method, path, body=content, headers=self._headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            return 0, {"rc": type(error).__name__}, time.monotonic() - started
        if response.will_close:
            self.close()
        return response.status, answer, time.monotonic() - started

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def sample(self, route: str, seconds: float) -> None:
        """Keep the time of a call that ended now."""
        self._record.samples[route].append((time.monotonic() - seconds, seconds))

    def complain(self, route: str, status: int, answer: dict[str, Any]) -> None:
        """Count an answer that should not have come."""
        self._record.errors[f"{route}: {status} {answer.get('rc') or answer.get('message') or ''}".strip()] += 1

    def _connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._plan.host, self._plan.port, timeout=CALL_SECONDS)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        return connection


def run_client(plan: Plan, *, api_key: str, until: float, stop: Event, record: Record) -> None:
    """Submit a chat request, wait until it is done, and begin again, until the time is over."""
    caller = Caller(plan, api_key=api_key, record=record)
    while time.monotonic() < until and not stop.is_set():
        mark = uuid.uuid4().hex
        started = time.monotonic()
        body: dict[str, object] = {
            "model": plan.model,
            "messages": [
                {"role": "system", "content": "You repeat what you are told."},
                {"role": "user", "content": mark},
            ],
            "max_tokens": plan.max_tokens,
        }
        status, answer, seconds = caller.call("POST", "/api/v2/generate/chat/async", body)
        if status != http.client.ACCEPTED:
            caller.complain(SUBMIT, status, answer)
            stop.wait(0.1)
            continue
        caller.sample(SUBMIT, seconds)
        request_id = str(answer["id"])
        record.accepted[request_id] = mark
        content = _await_reply(caller, plan, request_id=request_id, record=record)
        if content is not None:
            record.answered[request_id] = content
            caller.sample(CYCLE, time.monotonic() - started)
    caller.close()


def _await_reply(caller: Caller, plan: Plan, *, request_id: str, record: Record) -> str | None:
    """Read the status until the request is done; return the content of its one reply, or None with an error counted."""
    deadline = time.monotonic() + SERVED_SECONDS
    while time.monotonic() < deadline:
        time.sleep(plan.poll_seconds)
        status, answer, seconds = caller.call("GET", f"/api/v2/generate/chat/status/{request_id}")
        if status != http.client.OK:
            caller.complain(STATUS, status, answer)
            if status:
                return None
            continue
        caller.sample(STATUS, seconds)
        if answer["done"]:
            generations = answer["generations"]
            if len(generations) == 1 and not answer["faulted"]:
                return str(generations[0]["message"]["content"])
            record.errors[f"{STATUS}: done with {len(generations)} generations"] += 1
            return None
    record.errors[f"{STATUS}: not done after {SERVED_SECONDS} seconds"] += 1
    return None


def run_worker(
    plan: Plan, *, api_key: str, name: str, stop: Event, announce: Callable[[], None], record: Record
) -> None:
    """Pop and answer at once what comes, until told to stop, and announce the first pop that was not refused."""
    caller = Caller(plan, api_key=api_key, record=record)
    declaration: dict[str, object] = {
        "name": name,
        "models": [plan.model],
        "bridge_agent": "hordechat-benchmark:1:unknown",
        "threads": 1,
        "nsfw": True,
        "max_length": 512,
        "max_context_length": 8192,
        "chat_jobs": True,
        "chat_features": list(CAPABILITIES),
        "chat_limits": {"max_context_length": 8192, "max_length": 1024},
        "model_id": plan.model,
    }
    was_welcome = False
    while not stop.is_set():
        status, answer, seconds = caller.call("POST", "/api/v2/generate/text/pop", declaration)
        if status != http.client.OK:
            caller.complain(POP, status, answer)
            stop.wait(0.1)
            continue
        if not was_welcome:
            was_welcome = True
            announce()
        if answer["id"] is None:
            caller.sample(IDLE_POP, seconds)
            # Spread, or all workers end up asking at the same moment.
            stop.wait(plan.idle_seconds * random.uniform(0.5, 1.5))
            continue
        caller.sample(POP, seconds)
        _reply(caller, plan, generation_id=str(answer["id"]), payload=answer["payload"], record=record)
    caller.close()


def _reply(caller: Caller, plan: Plan, *, generation_id: str, payload: dict[str, Any], record: Record) -> None:
    """Answer one generation with its own mark, filled up to the usual length of a reply."""
    mark = str(payload["messages"][-1]["content"])
    record.popped.append((generation_id, mark))
    body: dict[str, object] = {
        "id": generation_id,
        "message": {"role": "assistant", "content": mark.ljust(plan.reply_characters, ".")},
        "finish_reason": "stop",
        "model_id": plan.model,
    }
    status, answer, seconds = caller.call("POST", "/api/v2/generate/text/submit", body)
    if status != http.client.OK:
        caller.complain(REPLY, status, answer)
        return
    caller.sample(REPLY, seconds)
    record.stored.append(generation_id)


def drive_clients(plan: Plan, api_keys: list[str], until: float, stop: Event, pipe: Connection) -> None:
    """Run one client a key, each in its thread, and send what they saw; the body of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    records = [Record() for _ in api_keys]
    _run_threads(
        [
            threading.Thread(
                target=run_client,
                args=(plan,),
                kwargs={"api_key": api_key, "until": until, "stop": stop, "record": record},
            )
            for api_key, record in zip(api_keys, records, strict=True)
        ]
    )
    pipe.send(_add_up(records))


def drive_workers(plan: Plan, api_keys: list[str], ready: Semaphore, stop: Event, pipe: Connection) -> None:
    """Run one worker a key, each in its thread, and send what they saw; the body of a process.

    `ready` is released once by each worker whose first pop was welcome.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    records = [Record() for _ in api_keys]
    _run_threads(
        [
            threading.Thread(
                target=run_worker,
                args=(plan,),
                kwargs={
                    "api_key": api_key,
                    "name": f"benchmark-{number}",
                    "stop": stop,
                    "announce": ready.release,
                    "record": record,
                },
            )
            for number, (api_key, record) in enumerate(zip(api_keys, records, strict=True), start=1)
        ]
    )
    pipe.send(_add_up(records))


def _run_threads(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _add_up(records: list[Record]) -> Record:
    total = Record()
    for record in records:
        total.merge(record)
    return total
