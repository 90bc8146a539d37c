"""The status of a request, in two statements: the flags first, the generations after (decision S1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from hordechat.contract.limits import EXACT_QUEUE_POSITIONS, ONLINE_SECONDS
from hordechat.contract.status import ChatStatus, GenerationStatus, TextGenerationStatus, TextStatus
from hordechat.infra import sql
from requests_app.rules.progress import Progress
from requests_app.selectors.fleet import FEW_MODELS


@dataclass(frozen=True, kw_only=True)
class RequestFlags(Progress):
    """The row of `status.sql`: what a status says besides its generations."""

    restarted: int
    """Tries that failed."""
    created: datetime
    consumed_kudos: Decimal
    context_adjustments: str | None
    fault_reason: str | None
    fault_rc: str | None
    queue_position: int
    eligible_workers: int
    eligible_worker_threads: int


@dataclass(frozen=True, kw_only=True)
class GenerationRow:
    """The row of `generations.sql`: a try at a request that did not fail."""

    worker_id: UUID
    worker_name: str
    model: str
    state: str
    text: str | None
    seed: int
    gen_metadata: str
    created: datetime
    message: str | None
    finish_reason: str | None
    native_finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    charge_basis: str | None


def find_chat(*, request_id: UUID, now: datetime) -> ChatStatus | None:
    """Return a chat request's status, or None where there is no such chat request."""
    found = _find(request_id, is_chat=True, now=now)
    if found is None:
        return None
    flags, rows = found
    return ChatStatus(
        **_counts(flags, rows),
        generations=[
            GenerationStatus(
                **_generation(row),
                message=_from_json(row.message),
                finish_reason=row.finish_reason,
                native_finish_reason=row.native_finish_reason,
                prompt_tokens=row.prompt_tokens,
                completion_tokens=row.completion_tokens,
                reasoning_tokens=row.reasoning_tokens,
                charge_basis=row.charge_basis,
                queue_wait_seconds=max(0.0, (row.created - flags.created).total_seconds()),
            )
            for row in rows
            if row.text is not None
        ],
        context_adjustments=_from_json(flags.context_adjustments),
        impossible_reason=None,
        fault_reason=flags.fault_reason if flags.is_faulted else None,
        fault_rc=flags.fault_rc if flags.is_faulted else None,
    )


def find_text(*, request_id: UUID, now: datetime) -> TextStatus | None:
    """Return a text request's status, or None where there is no such text request."""
    found = _find(request_id, is_chat=False, now=now)
    if found is None:
        return None
    flags, rows = found
    return TextStatus(
        **_counts(flags, rows),
        generations=[TextGenerationStatus(**_generation(row)) for row in rows if row.text is not None],
    )


def _find(request_id: UUID, *, is_chat: bool, now: datetime) -> tuple[RequestFlags, list[GenerationRow]] | None:
    flags = sql.find_one(
        sql.load(__file__, "status.sql"),
        {
            "request_id": request_id,
            "is_chat": is_chat,
            "exact_positions": EXACT_QUEUE_POSITIONS,
            "few_models": FEW_MODELS,
            "online_since": now - timedelta(seconds=ONLINE_SECONDS),
        },
        RequestFlags,
    )
    if flags is None:
        return None
    return flags, sql.fetch_all(sql.load(__file__, "generations.sql"), {"request_id": request_id}, GenerationRow)


def _counts(flags: RequestFlags, rows: Sequence[GenerationRow]) -> dict[str, Any]:
    """Return what both families show of a request."""
    finished = sum(row.text is not None for row in rows)
    processing = len(rows) - finished
    return {
        "finished": finished,
        "processing": processing,
        "restarted": flags.restarted,
        # The generations may be newer than the flags: the counts never add up to more than was asked for.
        "waiting": max(0, min(flags.waiting, flags.jobs - processing - finished)),
        "done": flags.is_done,
        "faulted": flags.is_faulted,
        "wait_time": 0,
        "queue_position": flags.queue_position,
        "kudos": flags.consumed_kudos,
        "is_possible": not flags.is_faulted and (processing > 0 or flags.eligible_workers > 0),
        "eligible_workers": flags.eligible_workers,
        "eligible_worker_threads": flags.eligible_worker_threads,
    }


def _generation(row: GenerationRow) -> dict[str, Any]:
    """Return what both families show of a finished generation."""
    return {
        "worker_id": str(row.worker_id),
        "worker_name": row.worker_name,
        "model": row.model,
        "state": row.state,
        "text": row.text,
        "seed": row.seed,
        "gen_metadata": _from_json(row.gen_metadata),
    }


def _from_json(document: str | None) -> Any:
    return None if document is None else orjson.loads(document)
