"""Take a worker's submit: a reply that is stored and paid exactly once, or a job given back."""

import logging
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from billing_app.errors import InvalidApiKey
from hordechat.contract import submit as submit_contract
from hordechat.contract.submit import ChatSubmitInvalid, SubmitBody
from hordechat.errors import HordeError
from hordechat.infra import metrics
from hordechat.model_reference import reference
from requests_app.errors import (
    AbortedGeneration,
    ChatModelMismatch,
    ChatSubmitNonconformant,
    DuplicateGeneration,
    InvalidJobId,
)
from requests_app.rules import fault_reasons, verification
from requests_app.rules.length_buckets import bucket_of
from requests_app.rules.statistics import OTHER_MODELS
from requests_app.selectors import submit_facts
from requests_app.selectors.submit_facts import SubmitFacts
from requests_app.services import fault_record, faults, settlement
from requests_app.services.settlement import Reply
from workers_app.errors import WrongCredentials

logger = logging.getLogger(__name__)

NOTHING = Decimal(0)


def submit(*, api_key: str, body: SubmitBody, now: datetime) -> Decimal:
    """Take a reply or a fault for a pending generation, and return the kudos its worker's owner earned.

    Raises, in this order (SUB-41):
        InvalidJobId: no such generation.
        InvalidApiKey, WrongCredentials: the key is nobody's, or not the worker's owner's.
        DuplicateGeneration, AbortedGeneration: the generation is not pending any more.
        ChatSubmitInvalid, ChatModelMismatch: what was sent is no reply to this job.
        ChatSubmitNonconformant: the reply does not keep what its strict request asks for.
    """
    facts = _get_facts(api_key=api_key, body=body)
    return _take_fault(body, facts, api_key, now) if body.is_fault else _take_reply(body, facts, api_key, now)


def _take_fault(body: SubmitBody, facts: SubmitFacts, api_key: str, now: datetime) -> Decimal:
    if facts.is_chat:
        # Before all that may refuse: a fault that is sent again counts again (WFR-22).
        metrics.CHAT_WORKER_FAULTS.labels(fault_reasons.label_of(body.fault_reason), facts.trust_label).inc()
    _require_pending(facts)
    submit_contract.check_fault(body, is_chat=facts.is_chat)
    if facts.is_chat:
        _require_model(body.model_id, facts, is_required=body.is_chat)
        if (reason := fault_reasons.find_known(body.fault_reason)) is not None:
            fault_record.record_fault_reason(reason, request_id=facts.request_id, generation_id=facts.id)
    if not faults.give_back(request_id=facts.request_id, generation_id=facts.id, now=now):
        raise _lost(facts, api_key=api_key)
    _tell(facts, "faulted", now)
    return NOTHING


def _take_reply(body: SubmitBody, facts: SubmitFacts, api_key: str, now: datetime) -> Decimal:
    _require_pending(facts)
    try:
        reply, dropped_tool_calls = _read_reply(body, facts)
    except (ChatSubmitInvalid, ChatModelMismatch, ChatSubmitNonconformant) as refusal:
        if facts.is_chat:
            fault_record.record_refusal(refusal, request_id=facts.request_id, generation_id=facts.id)
        raise
    reward = settlement.settle_reply(reply, facts=facts, now=now)
    if reward is None:
        raise _lost(facts, api_key=api_key)
    _tell(facts, "fake" if facts.is_fake else "completed", now, dropped_tool_calls=dropped_tool_calls)
    if reply.is_empty and not facts.is_fake:
        metrics.EMPTY_REPLIES.labels(reference.find_listed_name(facts.model) or OTHER_MODELS).inc()
    return reward


def _read_reply(body: SubmitBody, facts: SubmitFacts) -> tuple[Reply, int]:
    """Return the reply as it is stored, and how many of its calls were dropped.

    It is judged by the family of the stored request, whatever the body looks like (SUB-43, SUB-50).
    """
    if not facts.is_chat:
        return submit_contract.read_text_reply(body), 0
    reply = submit_contract.read_chat_reply(body)
    _require_model(reply.model_id, facts, is_required=True)
    verified = verification.verify(reply, facts.reply_contract)
    return verified.reply, verified.dropped_tool_calls


def _get_facts(*, api_key: str, body: SubmitBody) -> SubmitFacts:
    try:
        generation_id = UUID(body.id)
    except ValueError:
        raise InvalidJobId(generation_id=body.id) from None
    facts = submit_facts.find(generation_id=generation_id, api_key=api_key)
    if facts is None:
        raise InvalidJobId(generation_id=body.id)
    if facts.submitter_id is None:
        raise InvalidApiKey
    if facts.submitter_id != facts.owner_id:
        raise WrongCredentials(worker_name=facts.worker_name)
    return facts


def _require_pending(facts: SubmitFacts) -> None:
    if facts.is_stored:
        raise DuplicateGeneration(generation_id=facts.id)
    if facts.is_faulted:
        raise AbortedGeneration(generation_id=facts.id, lease_seconds=facts.lease_seconds)


def _require_model(sent: object, facts: SubmitFacts, *, is_required: bool) -> None:
    assert facts.assigned_model is not None, "a chat generation records the model it was assigned"
    if sent is None:
        if is_required:
            raise ChatSubmitInvalid("'model_id' is required on a chat submit.")
    elif not isinstance(sent, str):
        raise ChatSubmitInvalid("'model_id' has to be a string.")
    elif sent != facts.assigned_model:
        raise ChatModelMismatch(sent=sent, assigned=facts.assigned_model)


def _lost(facts: SubmitFacts, *, api_key: str) -> HordeError:
    """Return why the generation was not pending any more when its row was claimed (SUB-42)."""
    newest = submit_facts.find(generation_id=facts.id, api_key=api_key)
    if newest is None:
        return InvalidJobId(generation_id=str(facts.id))
    if newest.is_stored:
        return DuplicateGeneration(generation_id=facts.id)
    return AbortedGeneration(generation_id=facts.id, lease_seconds=newest.lease_seconds)


def _tell(facts: SubmitFacts, outcome: str, now: datetime, *, dropped_tool_calls: int = 0) -> None:
    """Count and log how a generation ended; whoever lost the claim of it does not come here."""
    metrics.REPLIES.labels(outcome).inc()
    seconds = (now - facts.assigned_at).total_seconds()
    if facts.is_over_capacity:
        bucket = bucket_of(facts.max_length)
        metrics.GATE_SHADOW_OUTCOMES.labels(facts.trust_label, bucket, outcome).inc()
        if outcome == "completed":
            metrics.GATE_SHADOW_SERVICE_SECONDS.labels(facts.trust_label, bucket).observe(seconds)
    dropped = {"dropped_tool_calls": dropped_tool_calls} if dropped_tool_calls else {}
    logger.info(
        "horde.job_submit.done",
        extra={
            "outcome": outcome,
            "generation_id": facts.id,
            "waiting_prompt_id": facts.request_id,
            "worker_id": facts.worker_id,
            "seconds": round(seconds, 3),
            **dropped,
        },
    )
