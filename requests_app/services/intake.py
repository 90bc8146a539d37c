"""Take a chat submission in: the documented order of checks, then the activation in one transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import orjson
from django.db import transaction
from psycopg.types.json import Jsonb

from billing_app.errors import InvalidApiKey
from billing_app.rules import pricing
from billing_app.rules.accounts import HouseAccount, TransferKind
from billing_app.services import ledger
from billing_app.services.ledger import NewTransfer
from hordechat.contract.chat import ChatSubmission
from hordechat.contract.limits import DEFAULT_CONTEXT_TOKENS, REQUEST_LIFE_SECONDS
from hordechat.contract.refusals import UnsupportedChatParameter
from hordechat.contract.vocabulary import Conformance
from hordechat.infra import sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.errors import NoEligibleWorker, UnknownChatModel
from requests_app.rules import flattening, mapping, needs, queue_order, served, sizing
from requests_app.selectors import intake_facts
from requests_app.selectors.intake_facts import IntakeFacts
from workers_app.rules.capabilities import mask_of

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
class NewRequest:
    """A chat request as it is about to be stored: judged, sized, its needs derived."""

    submission: ChatSubmission
    flattened: str
    needs: tuple[str, ...]
    conformance: Conformance
    max_context_length: int
    address: str | None
    client_agent: str


def submit_chat(
    *, api_key: str, submission: ChatSubmission, address: str | None, client_agent: str, now: datetime
) -> Accepted:
    """Queue a chat request.

    Raises:
        UnsupportedChatParameter: a documented key this server does not serve yet.
        InvalidApiKey: nobody has the key.
        UnknownChatModel: a model no online worker declared.
        NoEligibleWorker: none of the models has a serving worker.
        PromptExceedsContext: the conversation does not fit.
    """
    if path := served.find_unserved(submission):
        raise UnsupportedChatParameter.not_yet(path)
    conformance = Conformance(submission.horde.conformance)
    request = NewRequest(
        submission=submission,
        flattened=flattening.flatten(submission, messages=submission.messages),
        needs=needs.needs_of(submission, messages=submission.messages).capabilities,
        conformance=conformance,
        max_context_length=DEFAULT_CONTEXT_TOKENS,
        address=address,
        client_agent=client_agent,
    )
    facts = intake_facts.get(
        api_key=api_key,
        models=submission.models,
        needs=request.needs,
        max_length=submission.max_length,
        max_context_length=request.max_context_length,
        now=now,
    )
    if facts.user_id is None:
        raise InvalidApiKey
    _require_served_models(submission, facts)
    _require_fit(submission)
    request_id = _activate(request, facts=facts, now=now)
    return Accepted(
        id=request_id,
        quote=pricing.total_quote(
            pricing.quote_unknown(max_length=submission.max_length, max_context_length=request.max_context_length), n=1
        ),
        warning=None if facts.able_workers else NOBODY_CAN_SERVE,
    )


def _require_served_models(submission: ChatSubmission, facts: IntakeFacts) -> None:
    """Refuse an unknown model first, over the whole list, and then a list nobody serves (MDL-25)."""
    for index, model in enumerate(submission.models):
        if model not in facts.known_models:
            raise UnknownChatModel(path="model" if submission.names_one_model else f"models[{index}]", model=model)
    if not facts.serving_workers:
        raise NoEligibleWorker(models=submission.models)


def _require_fit(submission: ChatSubmission) -> None:
    # Lowering, growth and trimming come with the options that ask for them; until then the default context is all.
    sizing.size(
        messages=submission.messages,
        tools=submission.tools,
        max_length=submission.max_length,
        max_context_length=None,
        context_fit="reject",
        largest_length=None,
        largest_context=None,
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
                "prompt": request.flattened,
                "params": _json(mapping.stored_params(submission)),
                "models": list(submission.models),
                "max_length": submission.max_length,
                "max_context_length": request.max_context_length,
                "order_key": queue_order.order_key(balance=facts.posted_kudos or Decimal(0), activated_at=now),
                "address": request.address,
                "client_agent": request.client_agent,
                "now": now,
                "expiry": now + timedelta(seconds=REQUEST_LIFE_SECONDS),
                "messages": _json([message.as_json() for message in submission.messages]),
                "needs": list(request.needs),
                "conformance": request.conformance.value,
                "feature_mask": mask_of(request.needs),
            },
        )
        # The payer's account is the last lock of the transaction (decision S3).
        ledger.post(
            [
                NewTransfer(
                    idempotency_key=f"tax:{request_id}",
                    debit_account=facts.account_id,
                    credit_account=HouseAccount.TAX,
                    amount=pricing.HORDE_TAX,
                    kind=TransferKind.TAX,
                    cause=request_id,
                )
            ],
            now=now,
        )
    return request_id


def _json(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
