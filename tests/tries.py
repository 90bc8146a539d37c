"""Tries that fail: a strict request with a job in hand, replies that are refused for each reason, what that leaves."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection
from prometheus_client import REGISTRY

from hordechat.infra import clock
from requests_app.services import faults
from tests.horde import ABLE, MODEL, Answer, Horde, one_value

STRICT: Mapping[str, Any] = {"response_format": {"type": "json_object"}}

INVALID = "ChatSubmitInvalid"
MISMATCH = "ChatModelMismatch"
NONCONFORMANT = "ChatSubmitNonconformant"
REFUSED: Mapping[str, dict[str, Any]] = {
    INVALID: {"finish_reason": "tired"},
    MISMATCH: {"model_id": "other/model"},
    NONCONFORMANT: {"message": {"role": "assistant", "content": "no object"}},
}
"""By return code, what makes a reply to a strict request be refused with it."""
CONFORMANT: Mapping[str, Any] = {"message": {"role": "assistant", "content": '{"a": 1}'}}


def strict_request(horde: Horde, **changes: Any) -> str:
    """Queue a request whose replies have to be JSON objects, for a worker that takes it."""
    horde.pop(**ABLE)
    status, body = horde.submit(**STRICT, **changes)
    assert status == 202, body
    request_id: str = body["id"]
    return request_id


def next_try(horde: Horde, **changes: Any) -> str:
    """Take the next job and return its generation."""
    status, body = horde.pop(**{**ABLE, **changes})
    assert status == 200, body
    assert body["id"] is not None, "the pop has to hand a job out"
    generation_id: str = body["id"]
    return generation_id


def strict_in_flight(horde: Horde) -> tuple[str, str]:
    """Bring a strict request into a worker's hands; return its id and its generation's."""
    return strict_request(horde), next_try(horde)


def refuse(horde: Horde, generation_id: str, rc: str) -> str:
    """Send a reply that is refused with a return code, and return the message."""
    status, body = horde.reply(generation_id, **REFUSED[rc])
    assert (status, body["rc"]) == (400, rc)
    message: str = body["message"]
    return message


def lapse(*generation_ids: str) -> None:
    """Let the leases of some generations be over, of all where none is named."""
    one_value(
        "UPDATE processing_gens SET deadline = now() - interval '1 s' WHERE %s OR id = ANY(%s::uuid[]) RETURNING 1",
        [not generation_ids, list(generation_ids)],
    )


def record_of(request_id: str) -> tuple[str | None, str | None]:
    """Return what a request says of its failed tries: the reason and the return code."""
    [reason, rc] = one_value(
        "SELECT ARRAY[chat_fault_reason, chat_fault_rc] FROM waiting_prompts WHERE id = %s", [request_id]
    )
    return reason, rc


NO_RECORD = (None, None)


def refusal_of(generation_id: str) -> str | None:
    """Return the return code a generation's reply was refused with last."""
    found: str | None = one_value("SELECT chat_refusal_rc FROM processing_gens WHERE id = %s", [generation_id])
    return found


def counters(worker: str = "worker one") -> tuple[int, int, int]:
    """Return a worker's aborted jobs of the hour, its uncompleted jobs of all time, and its nonconformant replies."""
    [aborted, uncompleted, nonconformant] = one_value(
        "SELECT ARRAY[aborted_jobs, uncompleted_jobs, nonconformant_replies] FROM workers WHERE name = %s", [worker]
    )
    return aborted, uncompleted, nonconformant


def pause_workers() -> None:
    """Pause every worker there is: what they are handed is fake."""
    one_value("UPDATE workers SET paused = true RETURNING 1")


def counted(metric: str, **labels: str) -> float:
    """Return what a metric shows for some labels by now."""
    return REGISTRY.get_sample_value(metric, labels) or 0


def counts_of(metric: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return a whole counter by its attributes, given in their order here."""
    [counter] = [each for each in REGISTRY.collect() if each.name == metric]
    return {
        tuple(sample.labels[label] for label in labels): sample.value
        for sample in counter.samples
        if sample.name.endswith("_total")
    }


@contextmanager
def refusing_rows(table: str, condition: str) -> Iterator[None]:
    """Let the database refuse every row that is written to a table from now on and does not meet a condition."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT met CHECK ({condition}) NOT VALID")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT met")


@dataclass(frozen=True)
class Family:
    """How a request of one family is asked, taken, given back and looked at."""

    queue: Callable[[Horde], str]
    take: Callable[[Horde], str]
    give_back: Callable[[Horde, str], Answer]
    look: Callable[[Horde, str], Answer]


FAMILIES = {
    "chat": Family(
        queue=lambda horde: horde.queued(),
        take=lambda horde: str(horde.pop()[1]["id"]),
        give_back=lambda horde, generation_id: horde.fault(generation_id),
        look=lambda horde, request_id: horde.status(request_id),
    ),
    "text": Family(
        queue=lambda horde: horde.queued_text(models=[MODEL]),
        take=lambda horde: str(horde.pop_text()[1]["id"]),
        give_back=lambda horde, generation_id: horde.reply_text(generation_id, "", state="faulted"),
        look=lambda horde, request_id: horde.text_status(request_id),
    ),
}


def sweep(horde: Horde, generation_id: str) -> Answer:
    """Let a lease lapse and the sweep come."""
    lapse(generation_id)
    assert faults.abort_lapsed(now=clock.now()) == 1
    return 200, {"reward": 0}


def standing(body: dict[str, Any]) -> tuple[int, int, int, bool, bool]:
    return body["waiting"], body["processing"], body["restarted"], body["faulted"], body["done"]


FAULT_MESSAGES = {
    "prompt_overflow": "The worker could not fit the prompt into its context.",
    "unbuildable_grammar": (
        "The worker could not build the grammar the request's tool choice or response format needs."
    ),
    "tool_violation": "The model's reply broke the request's tool controls.",
    "reply_refused": "The AI Horde refused the worker's reply.",
    "generation_error": "The worker's backend failed while generating.",
}
"""What a request says of each reason a worker may send."""

UNKNOWN_REASONS: list[Any] = [
    "a reason of tomorrow", "PROMPT_OVERFLOW", "prompt_overflow ", "", "none", "unknown", "x\0", "x" * 10_000,
    0, 1.5, True, False, [], ["prompt_overflow"], {}, {"reason": "prompt_overflow"},
]  # fmt: skip


def faults_counted() -> dict[tuple[str, ...], float]:
    """Return the faulted chat submits so far, by the reason sent and their owner's trust."""
    return counts_of("horde_chat_worker_faults", "reason", "worker_trusted")
