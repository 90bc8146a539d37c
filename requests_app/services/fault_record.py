"""Write down why a chat request's tries fail: what its status and its `faulted` signal say should it be faulted.

Each record is one statement and its own commit, before the answer or the fault it explains. A record that cannot be
written is logged, and what it explains goes on.
"""

import logging
from collections.abc import Mapping
from uuid import UUID

from django.db import Error

from hordechat.contract.limits import MAX_FAULT_REASON_CHARACTERS
from hordechat.contract.text import without_nul
from hordechat.contract.vocabulary import FaultReason
from hordechat.errors import HordeError
from hordechat.infra import sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.rules import fault_reasons

logger = logging.getLogger(__name__)


def record_refusal(refusal: HordeError, *, request_id: UUID, generation_id: UUID) -> None:
    """Write down that a reply to a pending generation was refused; a later refusal replaces it (RFL-01..09)."""
    _record(
        "record_refusal.sql",
        {
            "request_id": request_id,
            "generation_id": generation_id,
            # A message quotes what a worker sent, which may hold what a column cannot.
            "reason": without_nul(refusal.message)[:MAX_FAULT_REASON_CHARACTERS],
            "rc": refusal.code.value,
        },
    )


def record_fault_reason(reason: FaultReason, *, request_id: UUID, generation_id: UUID) -> None:
    """Write down why a worker gives a pending generation up, unless the server refused its reply (WFR-08..12)."""
    _record(
        "record_fault_reason.sql",
        {
            "request_id": request_id,
            "generation_id": generation_id,
            "reason": fault_reasons.MESSAGES[reason],
            "rc": fault_reasons.CHAT_WORKER_FAULT,
        },
    )


def _record(statement: str, values: Mapping[str, object]) -> None:
    try:
        _execute(statement, values)
    except Error:
        logger.exception("a fault record was not written", extra={"generation_id": values["generation_id"]})


@retry_on_conflict
def _execute(statement: str, values: Mapping[str, object]) -> None:
    sql.execute(sql.load(__file__, statement), values)
