"""Take a chat submission in: the documented order of checks, then the activation in one transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import orjson
from django.conf import settings
from django.db import IntegrityError, transaction
from psycopg.types.json import Jsonb

from billing_app.errors import InvalidApiKey
from billing_app.rules import pricing
from billing_app.rules.accounts import ANONYMOUS_USER_ID, HouseAccount, TransferKind
from billing_app.selectors import locked
from billing_app.services import ledger
from billing_app.services.ledger import NewTransfer
from hordechat.contract.chat import ChatSubmission
from hordechat.contract.limits import REQUEST_LIFE_SECONDS
from hordechat.contract.refusals import UnsupportedChatParameter
from hordechat.infra import sql
from hordechat.infra.constraints import is_violation_of
from hordechat.infra.transactions import retry_on_conflict
from hordechat.model_reference import reference
from requests_app.errors import (
    ChatAdmissionDisabled,
    ChatImageStorageUnavailable,
    ChatKudosCapExceeded,
    NoEligibleWorker,
    OperationKeyConflict,
    TooManyPrompts,
    UnknownChatModel,
)
from requests_app.rules import fingerprint, flattening, mapping, needs, queue_order, served, sizing
from requests_app.rules.needs import Needs
from requests_app.rules.sizing import Sized
from requests_app.selectors import intake_facts, operation_claims, waiting_slots
from requests_app.selectors.intake_facts import IntakeFacts

OPERATION_KEY_INDEX = "ix_waiting_prompts_user_operation_key"

NOBODY_CAN_SERVE = (
    "No online worker can serve this request now. It stays in the queue and expires in 20 minutes unless one comes; "
    "asking for fewer tokens may help."
)


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A request that was queued."""

    id: UUID
    quote: Decimal
    """The most the request is estimated to cost, in kudos, tax included."""
    warning: str | None


@dataclass(frozen=True, kw_only=True)
class Quoted:
    """A dry run's result: what the request would cost and be run with."""

    quote: Decimal
    prompt_tokens: int
    context_fit: str


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """The request a submission under the same operation key made before: nothing was queued or charged."""

    id: UUID
    quote: Decimal
    """The estimate the first answer told."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The claim a submission makes: its key, and by what a repeat of it is known."""

    key: UUID
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class NewRequest:
    """A chat request as it is about to be stored: judged, sized, its needs derived."""

    submission: ChatSubmission
    submitted_prompt: str
    """The whole conversation as sent; `prompt` is what trimming left of it."""
    prompt: str
    sized: Sized
    needs: Needs
    quote: Decimal
    operation: Operation | None
    address: str | None
    client_agent: str


def submit_chat(
    *, api_key: str, submission: ChatSubmission, address: str | None, client_agent: str, now: datetime
) -> Accepted | Repeated | Quoted:
    """Queue a chat request; find the one a repeated operation key names; of a dry run, return what it would cost.

    Raises, in this order:
        UnsupportedChatParameter: a documented key this server does not serve yet.
        OperationKeyConflict: the key was used for another request.
        ChatAdmissionDisabled: the operator takes no new chat requests.
        InvalidApiKey: nobody has the key.
        TooManyPrompts: the user has as many slots waiting as they may.
        UnknownChatModel: a model the reference lacks and no online worker declared.
        NoEligibleWorker: none of the models has a serving worker.
        PromptExceedsContext: the conversation does not fit.
        ChatKudosCapExceeded: the request is estimated to cost more than it may.
        ChatImageStorageUnavailable: the request holds images.
    """
    if path := served.find_unserved(submission):
        raise UnsupportedChatParameter.not_yet(path)
    operation = _operation_of(submission)
    if operation is not None and (repeated := _find_repeated(operation, api_key=api_key)):
        return repeated
    if not settings.HORDE.chat_admission_enabled:
        raise ChatAdmissionDisabled
    submitted_needs = needs.needs_of(submission, messages=submission.messages)
    facts = intake_facts.get(api_key=api_key, models=submission.models, needs=submitted_needs.capabilities, now=now)
    if facts.user_id is None:
        raise InvalidApiKey
    _require_concurrency(facts, waiting_slots=facts.waiting_slots + 1)
    _require_served_models(submission, facts)
    sized = _size(submission, facts)
    quote = _quote(submission, sized)
    if submission.horde.max_kudos is not None and quote > submission.horde.max_kudos:
        raise ChatKudosCapExceeded(estimate=quote, cap=submission.horde.max_kudos)
    if submission.horde.dry_run:
        return Quoted(quote=quote, prompt_tokens=sized.prompt_tokens, context_fit=_sizing_mode(submission))
    if any(message.image_count for message in sized.messages):
        raise ChatImageStorageUnavailable
    request = NewRequest(
        submission=submission,
        submitted_prompt=flattening.flatten(submission, messages=submission.messages),
        prompt=flattening.flatten(submission, messages=sized.messages),
        sized=sized,
        needs=needs.needs_of(submission, messages=sized.messages),
        quote=quote,
        operation=operation,
        address=address,
        client_agent=client_agent,
    )
    try:
        request_id = _activate(request, facts=facts, now=now)
    except IntegrityError as error:
        # The unique index let another submission of the same key commit first; any other violation is a fault.
        if operation is None or not is_violation_of(error, OPERATION_KEY_INDEX):
            raise
        repeated = _find_repeated(operation, api_key=api_key)
        if repeated is None:
            raise
        return repeated
    return Accepted(id=request_id, quote=quote, warning=None if facts.has_able_worker(sized) else NOBODY_CAN_SERVE)


def _operation_of(submission: ChatSubmission) -> Operation | None:
    """Return what a submission claims; a dry run neither looks a key up nor claims it (OPK-22, OPK-23)."""
    key = submission.horde.operation_key
    if key is None or submission.horde.dry_run:
        return None
    return Operation(key=key, fingerprint=fingerprint.fingerprint_of(submission))


def _find_repeated(operation: Operation, *, api_key: str) -> Repeated | None:
    """Return the request that was submitted under the key, by the same user and with the same body."""
    claim = operation_claims.find(api_key=api_key, operation_key=operation.key)
    if claim is None:
        return None
    if claim.fingerprint != operation.fingerprint:
        raise OperationKeyConflict
    return Repeated(id=claim.request_id, quote=claim.quoted_kudos)


def _require_concurrency(facts: IntakeFacts, *, waiting_slots: int) -> None:
    assert facts.concurrency is not None, "the key was resolved"
    if waiting_slots > facts.concurrency:
        raise TooManyPrompts(
            waiting=waiting_slots, limit=facts.concurrency, is_anonymous=facts.user_id == ANONYMOUS_USER_ID
        )


def _quote(submission: ChatSubmission, sized: Sized) -> Decimal:
    """Return the estimate a client is told: by the first listed model, for the request as it was sized."""
    each = pricing.quote(
        [reference.find(model) for model in submission.models],
        max_length=sized.max_length,
        max_context_length=sized.max_context_length,
    )
    return pricing.request_quote(each, n=1, image_count=sum(message.image_count for message in sized.messages))


def _sizing_mode(submission: ChatSubmission) -> str:
    """Return the mode the context was sized under: trimming comes after growth, and runs under it (CTX-37)."""
    return "grow" if submission.horde.context_fit == "truncate_oldest" else submission.horde.context_fit


def _require_served_models(submission: ChatSubmission, facts: IntakeFacts) -> None:
    """Refuse an unknown model first, over the whole list, and then a list nobody serves (MDL-25)."""
    for index, model in enumerate(submission.models):
        if model not in facts.known_models and not reference.is_known(model):
            raise UnknownChatModel(path="model" if submission.names_one_model else f"models[{index}]", model=model)
    if not facts.serving_workers:
        raise NoEligibleWorker(models=submission.models)


def _size(submission: ChatSubmission, facts: IntakeFacts) -> Sized:
    """Return the lengths and messages the request runs with, within what the serving workers declare."""
    return sizing.size(
        messages=submission.messages,
        tools=submission.tools,
        max_length=submission.max_length,
        max_context_length=submission.horde.max_context_length,
        context_fit=submission.horde.context_fit,
        largest_length=facts.largest_length,
        largest_context=facts.largest_context,
    )


@retry_on_conflict
def _activate(request: NewRequest, *, facts: IntakeFacts, now: datetime) -> UUID:
    """Store the request as active, queue it and take the tax, all or nothing (decision S2)."""
    assert facts.user_id is not None, "the key was resolved"
    assert facts.account_id is not None, "every user with a key has a balance"
    request_id = uuid4()
    submission = request.submission
    with transaction.atomic(durable=True):
        sql.execute(
            sql.load(__file__, "activate.sql"),
            {
                "id": request_id,
                "user_id": facts.user_id,
                "submitted_prompt": request.submitted_prompt,
                "prompt": request.prompt,
                "params": _json(mapping.stored_params(submission)),
                "models": list(submission.models),
                "max_length": request.sized.max_length,
                "max_context_length": request.sized.max_context_length,
                "context_adjustments": _json_or_null(request.sized.adjustments_as_json),
                "order_key": queue_order.order_key(balance=facts.posted_kudos or Decimal(0), activated_at=now),
                "tax": pricing.tax(),
                "quote": request.quote,
                "operation_key": None if request.operation is None else request.operation.key,
                "operation_fingerprint": None if request.operation is None else request.operation.fingerprint,
                "address": request.address,
                "client_agent": request.client_agent,
                "now": now,
                "expiry": now + timedelta(seconds=REQUEST_LIFE_SECONDS),
                "messages": _json([message.as_json() for message in request.sized.messages]),
                "extras": _json_or_null(mapping.stored_extras(submission)),
                "needs": list(request.needs.capabilities),
                "feature_mask": request.needs.feature_mask,
                "tools_temperature": request.needs.tools_temperature,
                "conformance": submission.horde.conformance,
            },
        )
        # The payer's accounts are the last locks of the transaction, and what is decided under them is read after, in a
        # statement of its own (decision S3).
        locked.list_accounts(user_id=facts.user_id)
        _require_concurrency(facts, waiting_slots=waiting_slots.count(user_id=facts.user_id, models=submission.models))
        ledger.post(
            [
                NewTransfer(
                    idempotency_key=f"tax:{request_id}",
                    debit_account=facts.account_id,
                    credit_account=HouseAccount.TAX,
                    amount=pricing.tax(),
                    kind=TransferKind.TAX,
                    cause=request_id,
                )
            ],
            now=now,
        )
    return request_id


def _json(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)


def _json_or_null(value: object) -> Jsonb | None:
    return None if value is None else _json(value)
