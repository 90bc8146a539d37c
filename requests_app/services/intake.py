"""Take a chat submission in: the documented order of checks, then the activation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError

from billing_app.errors import SharedKeyEmpty
from billing_app.rules import pricing
from hordechat.contract.chat import ChatSubmission, Message
from hordechat.contract.sampling import check_stop_sequences
from hordechat.contract.vocabulary import Conformance
from hordechat.infra import metrics
from hordechat.infra.constraints import is_violation_of
from hordechat.model_reference import reference
from requests_app.errors import (
    ChatAdmissionDisabled,
    ChatImageStorageUnavailable,
    ChatKudosCapExceeded,
    NoEligibleWorker,
    OperationKeyConflict,
    PromptExceedsContext,
    TooManyPrompts,
    UnknownChatModel,
)
from requests_app.rules import fingerprint, flattening, mapping, needs, sizing
from requests_app.rules.sizing import Sized
from requests_app.rules.targeting import Targeting
from requests_app.selectors import fleet, operation_claims, requesters
from requests_app.selectors.fleet import ChatFleet
from requests_app.services import activation, moderation, shared_checks, upfront
from requests_app.services.activation import ChatParts, NewRequest, Operation

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


def submit_chat(
    *, api_key: str, submission: ChatSubmission, address: str | None, client_agent: str, now: datetime
) -> Accepted | Repeated | Quoted:
    """Queue a chat request; find the one a repeated operation key names; of a dry run, return what it would cost.

    Raises, in this order:
        OperationKeyConflict: the key was used for another request.
        ChatAdmissionDisabled: the operator takes no new chat requests.
        MaintenanceMode: the operator takes no requests at all.
        InvalidApiKey, SharedKeyEmpty, SharedKeyExpired, DeletedUser: the key.
        WorkerNotFound: a worker it names does not exist.
        TooManyPrompts: the user has as many slots waiting as they may.
        AddressTimedOut: the address is refused for a while.
        CorruptPrompt: the texts cannot be screened.
        UnknownChatModel: a model the reference lacks and no online worker declared.
        NoEligibleWorker: none of the models has a serving worker.
        PromptExceedsContext: the conversation does not fit.
        TooManyStopSequences, ExcessiveStopSequence: the stop sequences together.
        ChatKudosCapExceeded: the request is estimated to cost more than it may.
        ChatImageStorageUnavailable: the request holds images.
        SharedKeyInsufficientKudos, KudosUpfront, NoAbleWorker, BadRequest: what it may cost is not covered.
    """
    operation = _operation_of(submission)
    if operation is not None and (repeated := _find_repeated(operation, api_key=api_key)):
        return repeated
    try:
        return _take_in(
            operation,
            api_key=api_key,
            submission=submission,
            address=address,
            client_agent=client_agent,
            now=now,
        )
    except (IntegrityError, TooManyPrompts, SharedKeyEmpty) as error:
        # Another submission of the same key may have been faster: the unique index let it commit first, or it took the
        # last slot or the last of a shared key. Any other violation is a fault.
        if operation is None or (isinstance(error, IntegrityError) and not is_violation_of(error, OPERATION_KEY_INDEX)):
            raise
        repeated = _find_repeated(operation, api_key=api_key)
        if repeated is None:
            raise
        return repeated


def _take_in(
    operation: Operation | None,
    *,
    api_key: str,
    submission: ChatSubmission,
    address: str | None,
    client_agent: str,
    now: datetime,
) -> Accepted | Quoted:
    """Queue a submission whose key is free, or return what it would cost.

    Raises:
        IntegrityError: the key was claimed meanwhile.
        HordeError: all that `submit_chat` names from the admission on.
    """
    if not settings.HORDE.chat_admission_enabled:
        raise ChatAdmissionDisabled
    requester = requesters.find(api_key=api_key, models=submission.models)
    shared_checks.require_open_site(requester)
    shared_checks.require_valid_key(requester, now=now)
    shared_checks.require_living_account(requester)
    named = shared_checks.read_worker_ids(submission.horde.only or submission.horde.ignore or ())
    serving = _find_fleet(submission, named, now=now)
    shared_checks.require_known_workers(named, known=serving.known_workers)
    shared_checks.require_concurrency(requester, waiting_slots=requester.waiting_slots + 1)
    shared_checks.require_no_timeout(address, now=now)
    submitted_prompt = flattening.flatten(submission, messages=submission.messages)
    messages = moderation.screen_messages(
        submission.messages, prompt=submitted_prompt, requester=requester, models=submission.models
    )
    _require_served_models(submission, serving)
    sized = _size(submission, messages, serving)
    check_stop_sequences(submission.sampling.stop_sequence, path="stop")
    quote = _quote(submission, sized)
    if submission.horde.max_kudos is not None and quote > submission.horde.max_kudos:
        raise ChatKudosCapExceeded(estimate=quote, cap=submission.horde.max_kudos)
    if submission.horde.dry_run:
        return Quoted(quote=quote, prompt_tokens=sized.prompt_tokens, context_fit=_sizing_mode(submission))
    if any(message.image_count for message in sized.messages):
        raise ChatImageStorageUnavailable
    derived = needs.needs_of(submission, messages=sized.messages)
    can_be_served = serving.can_serve(
        max_length=sized.max_length, max_context_length=sized.max_context_length, needs=derived.capabilities
    )
    request = NewRequest(
        submitted_prompt=submitted_prompt,
        prompt=flattening.flatten(submission, messages=sized.messages),
        params=mapping.stored_params(submission),
        models=submission.models,
        n=1,
        max_length=sized.max_length,
        max_context_length=sized.max_context_length,
        quote=quote,
        upfront=upfront.judge(
            models=submission.models,
            max_length=sized.max_length,
            n=1,
            can_be_served=can_be_served,
            slow_workers=submission.horde.slow_workers,
            names_workers=bool(named),
        ),
        targeting=_targeting(submission, named),
        address=address,
        client_agent=client_agent,
        operation=operation,
        chat=ChatParts(
            messages=[message.as_json() for message in sized.messages],
            extras=mapping.stored_extras(submission),
            context_adjustments=sized.adjustments_as_json,
            needs=derived,
            conformance=Conformance(submission.horde.conformance),
        ),
    )
    request_id = activation.activate_at_once(request, requester=requester, now=now)
    return Accepted(id=request_id, quote=quote, warning=None if can_be_served else NOBODY_CAN_SERVE)


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


def _targeting(submission: ChatSubmission, named: Mapping[str, UUID | None]) -> Targeting:
    return Targeting(
        workers=shared_checks.list_ids(named),
        worker_blacklist=submission.horde.ignore is not None,
        trusted_workers=submission.horde.trusted_workers,
        validated_backends=submission.horde.validated_backends,
        slow_workers=submission.horde.slow_workers,
    )


def _find_fleet(submission: ChatSubmission, named: Mapping[str, UUID | None], *, now: datetime) -> ChatFleet:
    """Ask once who serves the models: the answer feeds the model check, the lowering and the growth alike (MDL-20)."""
    return fleet.get_for_chat(
        models=submission.models,
        models_in_doubt=[model for model in submission.models if not reference.is_known(model)],
        targeting=_targeting(submission, named),
        now=now,
    )


def _require_served_models(submission: ChatSubmission, serving: ChatFleet) -> None:
    """Refuse an unknown model first, over the whole list, and then a list nobody serves (MDL-25)."""
    for index, model in enumerate(submission.models):
        if model not in serving.declared_models and not reference.is_known(model):
            raise UnknownChatModel(path="model" if submission.names_one_model else f"models[{index}]", model=model)
    if not serving.serving_workers:
        raise NoEligibleWorker(models=submission.models)


def _size(submission: ChatSubmission, messages: tuple[Message, ...], serving: ChatFleet) -> Sized:
    """Return the lengths and messages the request runs with, within what the serving workers declare; count both."""
    try:
        sized = sizing.size(
            messages=messages,
            tools=submission.tools,
            max_length=submission.max_length,
            max_context_length=submission.horde.max_context_length,
            context_fit=submission.horde.context_fit,
            largest_length=serving.largest_length,
            largest_context=serving.largest_context,
        )
    except PromptExceedsContext:
        metrics.CONTEXT_FIT.labels(submission.horde.context_fit, "refused").inc()
        raise
    if (buckets := sized.lowering_buckets) is not None:
        requested, declared = buckets
        is_dry_run = str(submission.horde.dry_run).lower()
        metrics.MAX_LENGTH_LOWERED.labels(requested, declared, is_dry_run).inc()
    metrics.CONTEXT_FIT.labels(submission.horde.context_fit, sized.outcome).inc()
    return sized


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
