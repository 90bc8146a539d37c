"""Whatever value stands in whatever place of a body: an orderly answer, never a 5xx, and a server that goes on."""

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.http.wire import MODEL, Answer, Site

SEED = 20_260_801
VALUES_A_PLACE = 12
VALUES: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
    -(2**63) - 1,
    2**64,
    0.5,
    1e308,
    -1e308,
    5e-324,
    "",
    " ",
    "x",
    "a" * 300,
    "\U0001f600" * 80,
    "\u202e\u0000",
    "%s %(a)s {} $1",
    "'; DROP TABLE workers; --",
    "\\u0000",
    "00000000-0000-0000-0000-000000000000",
    [],
    [None],
    ["x", 1, {}],
    {},
    {"": None},
    {"a": {"b": [1, {"c": "d"}]}},
)
CHAT = "/api/v2/generate/chat/async"
POP = "/api/v2/generate/text/pop"
SUBMIT = "/api/v2/generate/text/submit"
SERVED_CHAT: dict[str, Any] = {
    "model": MODEL,
    "messages": [
        {"role": "developer", "content": "a", "name": "b"},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": "c"},
    ],
    "max_completion_tokens": 64,
    "temperature": 1,
    "top_p": 1,
    "frequency_penalty": 0,
    "stop": ["a", "b"],
    "user": "x",
    "stream_options": {},
    "metadata": {"a": 1},
    "response_format": {"type": "text"},
    "horde": {"conformance": "strict", "include_reasoning": True, "dry_run": False},
}
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "a", "name": "b"},
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": "c", "tool_calls": []},
        ],
        "max_tokens": 64,
        "temperature": 1,
        "top_p": 1,
        "frequency_penalty": 0,
        "seed": 1,
        "reasoning_effort": "low",
        "stop": ["a", "b"],
        "n": 1,
        "stream": False,
        "stream_options": {},
        "metadata": {},
        "tools": [],
        "tool_choice": "auto",
        "response_format": {"type": "text"},
        "horde": {"only": ["x"], "max_context_length": 2048, "max_kudos": 1, "operation_key": "x", "dry_run": False},
    },
    POP: {
        "name": "worker of hostile values",
        "models": [MODEL, "other"],
        "max_length": 512,
        "max_context_length": 2048,
        "bridge_agent": "a:1:b",
        "threads": 1,
        "nsfw": True,
        "amount": 1,
        "chat_jobs": True,
        "prompt_jobs": True,
        "chat_features": ["seed"],
        "chat_limits": {"max_context_length": 8192, "max_length": 1024, "tools_max_temperature": 1},
        "model_id": MODEL,
        "image_transports": ["url"],
        "softprompts": [],
    },
    SUBMIT: {
        "id": "",
        "message": {"role": "assistant", "content": "a", "reasoning_content": "b", "tool_calls": None},
        "finish_reason": "stop",
        "native_finish_reason": "eos",
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "reasoning_tokens": 1,
        "model_id": MODEL,
        "state": "ok",
        "fault_reason": "x",
        "gen_metadata": [],
    },
}


def list_places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return the path of every value inside a body."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from list_places(inner, (*path, step))


def spoil(body: dict[str, Any], path: tuple[str | int, ...], value: object) -> bytes:
    """Return a body with another value in one place."""
    spoiled = deepcopy(body)
    parent: Any = spoiled
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return json.dumps(spoiled).encode()


def assert_orderly(answer: Answer, sent: bytes) -> None:
    assert answer.status < 500, (sent, answer.body)
    if answer.status >= 400:
        assert answer.json["message"], sent
        assert answer.json["rc"], sent


@pytest.mark.parametrize(
    ("path", "body"), [*BODIES.items(), (CHAT, SERVED_CHAT)], ids=["chat", "pop", "submit", "served chat"]
)
def test_a_hostile_value_in_any_place_ends_in_an_orderly_answer(site: Site, path: str, body: dict[str, Any]) -> None:
    dice = random.Random(SEED)
    site.pop()
    job = site.take_job()
    accepted = 0

    for place in list_places(body):
        for value in dice.sample(VALUES, k=VALUES_A_PLACE):
            own = {"id": job.generation_id, "model_id": job.model} if path == SUBMIT else {}
            sent = spoil({**body, **own}, place, value)
            answer = site.post(path, sent, apikey=site.key_of("owner"))
            assert_orderly(answer, sent)
            if answer.status < 300:
                accepted += 1
                # A stored reply ends its job: the next values need one that is pending.
                job = site.take_job() if path == SUBMIT else job

    assert accepted or body is BODIES[CHAT], "some values have to reach the database"
    assert site.send("GET", "/healthz/ready").status == 200
