"""Schemas and replies made to take all time there is: each submit is answered within seconds, and others meanwhile."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from hordechat.contract.vocabulary import Capability
from tests.e2e.conftest import LiveHorde

pytestmark = pytest.mark.slow
MOST_SECONDS = 3.0
TRIES = 3
"""The quickest counts: other tests share the machine."""
LEAST_OTHERS = 5
CAPABILITIES = [capability.value for capability in Capability]


def doubling(levels: int) -> dict[str, Any]:
    steps = {f"s{level}": {"anyOf": [{"$ref": f"#/$defs/s{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/s0", "$defs": {**steps, f"s{levels}": {"type": "integer"}}}


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


LARGE_NUMBER = "1" + "0" * 5000

HOSTILE = [
    pytest.param(doubling(30), '"text"', id="doubling anyOf"),
    pytest.param({"type": "string", "pattern": "^(a|aa)+$"}, json.dumps("a" * 60 + "!"), id="catastrophic pattern"),
    pytest.param({"type": "string", "pattern": "^(.*a){12}$"}, json.dumps("a" * 20_000 + "!"), id="many wildcards"),
    pytest.param(
        {"type": "array", "uniqueItems": True, "items": {}},
        json.dumps([{"a": number, "b": [number]} for number in range(3000)] + [{"a": 0, "b": [0]}]),
        id="3,000 items but one alike",
    ),
    pytest.param({"items": {"$ref": "#"}}, nested(400), id="a nested reply"),
    pytest.param({"items": {"$ref": "#"}}, nested(100_000), id="a deeply nested reply"),
    pytest.param({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "1", id="a reference to itself"),
    pytest.param({"multipleOf": 0.1, "type": "number"}, LARGE_NUMBER, id="a number of 5,000 digits"),
    pytest.param({"items": {"anyOf": [{"minimum": 1}] * 50}}, "[" + "0," * 200_000 + "0]", id="200,000 items"),
]


@pytest.mark.parametrize(("schema", "content"), HOSTILE)
def test_a_hostile_reply_is_answered_in_time_beside_others(
    live: LiveHorde, schema: dict[str, Any], content: str
) -> None:
    name, model = "hostile worker", "demo/hostile"
    declared: dict[str, Any] = {"name": name, "models": [model], "model_id": model, "chat_features": CAPABILITIES}
    live.pop(**declared)
    response_format = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    status, body = live.submit(model=model, response_format=response_format)
    assert status == 202, body
    request_id = body["id"]
    job = live.pop(**declared)[1]["id"]
    assert job is not None
    quickest, others = float("inf"), 0

    with ThreadPoolExecutor(1) as pool:
        for _ in range(TRIES):
            started = time.monotonic()
            hostile = pool.submit(live.reply, job, model_id=model, message={"role": "assistant", "content": content})
            others = 0
            while not hostile.done() or others < LEAST_OTHERS:
                with httpx2.Client(timeout=MOST_SECONDS) as other:
                    assert other.get(f"{live.api.url}/api/v2/status/heartbeat").status_code == 200
                others += 1
            answered, refusal = hostile.result(timeout=60)
            quickest = min(quickest, time.monotonic() - started)
            assert (answered, refusal.get("rc")) in {(400, "ChatSubmitNonconformant"), (200, None)}, refusal
            if quickest < MOST_SECONDS or answered == 200:
                break

    assert quickest < MOST_SECONDS
    assert live.call("DELETE", f"generate/chat/status/{request_id}")[0] == 200
    live.fault(job, model_id=model)
