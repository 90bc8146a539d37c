"""Take a text submission in: the documented order of checks, then the activation (text-path 2.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from billing_app.errors import SharedKeyInsufficientKudos
from billing_app.rules import pricing
from billing_app.rules.accounts import PUBLIC_KEY
from hordechat.contract import text_request
from hordechat.contract.refusals import BadRequest
from hordechat.contract.text_request import TextBody
from hordechat.infra import metrics
from hordechat.model_reference import reference
from requests_app.errors import (
    InvalidExtraSourceImages,
    KudosUpfront,
    MissingPrompt,
    NoAbleWorker,
    OnlyServiceAccountProxy,
    PromptExceedsContext,
    RequiresTrust,
)
from requests_app.rules import sizing
from requests_app.rules.sizing import SizedText
from requests_app.rules.targeting import Targeting
from requests_app.selectors import fleet, requesters
from requests_app.selectors.fleet import TextFleet
from requests_app.selectors.requesters import Requester
from requests_app.services import activation, moderation, shared_checks, upfront
from requests_app.services.activation import NewRequest


@dataclass(frozen=True, kw_only=True)
class AcceptedText:
    """A text request that was queued."""

    id: UUID
    quote: Decimal
    """The most the request is estimated to cost, in kudos, tax included."""
    is_servable: bool
    """Whether an online worker could take it now."""


@dataclass(frozen=True, kw_only=True)
class QuotedText:
    """A dry run's result: what the request would cost, and the context it would run under."""

    quote: Decimal
    sized: SizedText


def submit_text(
    *, api_key: str, body: TextBody, address: str | None, client_agent: str, now: datetime
) -> AcceptedText | QuotedText:
    """Queue a text request; of a dry run, return what it would cost.

    Raises, in this order:
        PromptExceedsContext: the prompt does not fit, under `reject` or `grow`; sizing comes first here (ORD-20).
        MaintenanceMode: the operator takes no requests.
        BadRequest: the webhook is no https address.
        InvalidApiKey, SharedKeyEmpty, SharedKeyExpired: the key.
        OnlyServiceAccountProxy, DeletedUser, InvalidExtraSourceImages, MissingPrompt: the user, and the body.
        WorkerNotFound, RequiresTrust: the workers it names, the privilege it takes.
        TooManyPrompts, AddressTimedOut, CorruptPrompt: as for chat.
        TokenOverflow, MissingFullSamplerOrder, TooManyStopSequences, ExcessiveStopSequence: the params together.
        SharedKeyInsufficientKudos, KudosUpfront, NoAbleWorker, BadRequest: what it may cost is not covered.
        SharedKeyEmpty: others used the shared key up meanwhile.
    """
    named = shared_checks.read_worker_ids(body.workers)
    targeting = _targeting(body, named)
    serving = fleet.get_for_text(models=body.models, targeting=targeting, now=now)
    sized = _size(body, serving)
    requester, is_downgraded = _find_payer(api_key, body, now=now)
    if body.proxied_account and not requester.is_service:
        raise OnlyServiceAccountProxy
    shared_checks.require_living_account(requester)
    if body.extra_source_images:
        raise InvalidExtraSourceImages
    if not body.prompt:
        raise MissingPrompt
    shared_checks.require_known_workers(named, known=serving.known_workers)
    if body.disable_batching and body.params.n > 1 and not requester.is_trusted:
        raise RequiresTrust
    shared_checks.require_concurrency(requester, waiting_slots=requester.waiting_slots + body.params.n)
    shared_checks.require_no_timeout(address, now=now)
    prompt = moderation.screen_prompt(body.prompt, requester=requester, models=body.models)
    text_request.check_params(body.params.model_copy(update={"max_context_length": sized.max_context_length}))
    quote = _quote(body, max_length=body.params.max_length, max_context_length=sized.max_context_length)
    if body.dry_run:
        return QuotedText(quote=quote, sized=sized)
    can_be_served = serving.can_serve(max_length=body.params.max_length, max_context_length=sized.max_context_length)
    request = NewRequest(
        submitted_prompt=body.prompt,
        prompt=prompt,
        params=body.params.sampling,
        models=_each_once(body.models),
        n=body.params.n,
        max_length=body.params.max_length,
        max_context_length=sized.max_context_length,
        quote=quote,
        upfront=upfront.judge(
            models=body.models,
            max_length=body.params.max_length,
            n=body.params.n,
            can_be_served=can_be_served,
            slow_workers=body.slow_workers,
            names_workers=bool(named),
        ),
        targeting=targeting,
        address=address,
        client_agent=client_agent,
        is_downgraded=is_downgraded,
        proxied_account=body.proxied_account or None,
        webhook=body.webhook or None,
    )
    return _activate(request, requester=requester, body=body, serving=serving, now=now)


def _activate(
    request: NewRequest, *, requester: Requester, body: TextBody, serving: TextFleet, now: datetime
) -> AcceptedText:
    """Activate a request, lowered to what is free when its client would rather have that than a refusal."""
    try:
        request_id = activation.activate_at_once(request, requester=requester, now=now)
    except (KudosUpfront, SharedKeyInsufficientKudos, NoAbleWorker):
        if not body.allow_downgrade or upfront.is_bound_to_workers(names_workers=bool(body.workers)):
            raise
        request = activation.downgrade(request)
        request = replace(
            request,
            quote=_quote(body, max_length=request.max_length, max_context_length=request.max_context_length),
        )
        request_id = activation.activate_at_once(request, requester=requester, now=now)
    is_servable = serving.can_serve(max_length=request.max_length, max_context_length=request.max_context_length)
    return AcceptedText(id=request_id, quote=request.quote, is_servable=is_servable)


def _find_payer(api_key: str, body: TextBody, *, now: datetime) -> tuple[Requester, bool]:
    """Return who pays, and whether that is the anonymous user in place of a shared key that is used up."""
    requester = requesters.find(api_key=api_key, models=body.models)
    shared_checks.require_open_site(requester)
    if body.webhook and not body.webhook.startswith("https://"):
        raise BadRequest("'webhook' has to begin with https://.")
    if requester.shared_key_id is not None and requester.left_kudos == 0 and body.allow_downgrade:
        return requesters.find(api_key=PUBLIC_KEY, models=body.models), True
    shared_checks.require_valid_key(requester, now=now)
    return requester, False


def _targeting(body: TextBody, named: Mapping[str, UUID | None]) -> Targeting:
    return Targeting(
        workers=shared_checks.list_ids(named),
        worker_blacklist=body.worker_blacklist,
        trusted_workers=body.trusted_workers,
        validated_backends=body.validated_backends,
        slow_workers=body.slow_workers,
    )


def _size(body: TextBody, serving: TextFleet) -> SizedText:
    try:
        sized = sizing.size_text(
            prompt_characters=len(body.prompt),
            max_length=body.params.max_length,
            max_context_length=body.params.max_context_length,
            context_fit=body.context_fit,
            largest_context=serving.largest_context,
        )
    except PromptExceedsContext:
        metrics.CONTEXT_FIT.labels(body.context_fit, "refused").inc()
        raise
    metrics.CONTEXT_FIT.labels(body.context_fit, sized.outcome).inc()
    return sized


def _quote(body: TextBody, *, max_length: int, max_context_length: int) -> Decimal:
    each = pricing.quote(
        [reference.find(model) for model in body.models[:1]],
        max_length=max_length,
        max_context_length=max_context_length,
    )
    return pricing.request_quote(each, n=body.params.n)


def _each_once(models: Sequence[str]) -> list[str]:
    """Return the models in their order without repeats: a request waits once for each."""
    return list(dict.fromkeys(models))
