"""Make a judged request wait in the queue: its row, hold, tax, claim and queue rows, or none of them (decision S2).

A request without stored objects is activated at once, in one transaction. One with objects takes two, since nothing
network-like happens in a transaction: `store` writes the inactive row with its hold, the objects are stored, and
`activate` does the rest; `discard` undoes the first when the second cannot be. What is left of a process that died in
between is swept with its hold when the row expires.

The requester's account is the last lock of each transaction; what is decided under it is read after, in a statement of
its own (decision S3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import orjson
from django.db import connection, transaction
from psycopg.types.json import Jsonb

from billing_app.errors import InsufficientKudos, SharedKeyEmpty, SharedKeyInsufficientKudos
from billing_app.rules import pricing
from billing_app.rules.accounts import HUNDREDTH, HouseAccount, TransferKind
from billing_app.selectors import locked
from billing_app.services import ledger, spending
from billing_app.services.ledger import NewTransfer
from hordechat.contract.limits import REQUEST_LIFE_SECONDS
from hordechat.contract.refusals import BadRequest
from hordechat.contract.vocabulary import Conformance
from hordechat.errors import HordeError
from hordechat.infra import sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.errors import KudosUpfront, NoAbleWorker
from requests_app.rules import queue_order
from requests_app.rules.needs import Needs
from requests_app.rules.progress import Spending
from requests_app.rules.targeting import Targeting
from requests_app.selectors import waiting_slots
from requests_app.selectors.requesters import Requester
from requests_app.services import shared_checks, upfront
from requests_app.services.upfront import Upfront


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The claim a submission makes: its key, and by what a repeat of it is known."""

    key: UUID
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class ChatParts:
    """What a chat request has and a text request has not."""

    messages: Sequence[Mapping[str, object]]
    extras: Mapping[str, object] | None
    context_adjustments: Sequence[Mapping[str, object]] | None
    needs: Needs
    conformance: Conformance


@dataclass(frozen=True, kw_only=True)
class NewRequest:
    """A request as it is about to be stored: judged, screened, sized, priced."""

    submitted_prompt: str
    """The whole text as sent; `prompt` is what screening and trimming left of it."""
    prompt: str
    params: Mapping[str, object]
    models: Sequence[str]
    n: int
    max_length: int
    max_context_length: int
    quote: Decimal
    upfront: Upfront
    targeting: Targeting
    address: str | None
    client_agent: str
    operation: Operation | None = None
    chat: ChatParts | None = None
    is_downgraded: bool = False
    """Whether it runs on less than it asked for, since its kudos could not be held."""
    proxied_account: str | None = None
    webhook: str | None = None


@retry_on_conflict
def activate_at_once(request: NewRequest, *, requester: Requester, now: datetime) -> UUID:
    """Store a request as active, queue it and take the tax, in one transaction.

    Raises:
        TooManyPrompts, SharedKeyEmpty, SharedKeyInsufficientKudos, KudosUpfront, NoAbleWorker, BadRequest: nothing is
            left.
        IntegrityError: the operation key was claimed meanwhile; nothing is left.
    """
    request_id = uuid4()
    with transaction.atomic(durable=True):
        _write(request, request_id=request_id, requester=requester, is_active=True, now=now)
        _lock_payer(requester)
        _require_concurrency(request, requester)
        _cover(request, request_id=request_id, requester=requester, charge=pricing.tax(), now=now)
        _take_tax(request_id, requester=requester, now=now)
    return request_id


@retry_on_conflict
def store(request: NewRequest, *, requester: Requester, now: datetime) -> UUID:
    """Write a request that waits for its objects: inactive, unclaimed, untaxed, its kudos held.

    Raises:
        SharedKeyEmpty, SharedKeyInsufficientKudos, KudosUpfront, NoAbleWorker, BadRequest: nothing is left.
    """
    request_id = uuid4()
    with transaction.atomic(durable=True):
        _write(request, request_id=request_id, requester=requester, is_active=False, now=now)
        _lock_payer(requester)
        _cover(request, request_id=request_id, requester=requester, charge=Decimal(0), now=now)
    return request_id


@retry_on_conflict
def activate(request_id: UUID, request: NewRequest, *, requester: Requester, now: datetime) -> bool:
    """Activate a stored request: claim its operation key, queue it, take the tax. False: it is gone, or active already.

    A try that a deadlock undid is repeated as a whole, the claim included (OPK-13).

    Raises:
        TooManyPrompts: the user has as many slots waiting as they may.
        IntegrityError: the operation key was claimed meanwhile.
    """
    with transaction.atomic(durable=True):
        if not sql.execute(
            sql.load(__file__, "activate_stored.sql"),
            {"id": request_id, **_activation_columns(request, requester=requester, now=now)},
        ):
            return False
        _lock_payer(requester)
        _require_concurrency(request, requester)
        if requester.shared_key_id is not None:
            spending.charge_shared_key(shared_key_id=requester.shared_key_id, kudos=pricing.tax())
        _take_tax(request_id, requester=requester, now=now)
    return True


@retry_on_conflict
def discard(request_id: UUID, *, now: datetime) -> bool:
    """Delete a stored request that cannot be activated, and free its hold; False when it is gone or active."""
    with transaction.atomic(durable=True):
        row = sql.find_one(sql.load(__file__, "discard_request.sql"), {"id": request_id}, Discarded)
        if row is None:
            return False
        upfront.release(
            request_id, spending=Spending(consumed_kudos=Decimal(0), upfront_kudos=row.upfront_kudos), now=now
        )
    return True


@dataclass(frozen=True, kw_only=True)
class Discarded:
    """The row of `discard_request.sql`."""

    upfront_kudos: Decimal | None


def downgrade(request: NewRequest) -> NewRequest:
    """Return a request lowered to what is free: for a requester who would rather wait than be refused."""
    free = replace(request.upfront, is_held=False, required_kudos=Decimal(0))
    return replace(
        request,
        max_length=min(request.max_length, request.upfront.allowance_tokens),
        targeting=replace(request.targeting, slow_workers=True),
        upfront=free,
        is_downgraded=True,
    )


def _write(request: NewRequest, *, request_id: UUID, requester: Requester, is_active: bool, now: datetime) -> None:
    targeting, chat = request.targeting, request.chat
    columns: dict[str, object] = {
        "id": request_id,
        "user_id": requester.user_id,
        "api_key_id": requester.api_key_id,
        "shared_key_id": requester.shared_key_id,
        "submitted_prompt": request.submitted_prompt,
        "prompt": request.prompt,
        "params": _json(request.params),
        "models": list(request.models),
        "workers": list(targeting.workers),
        "worker_blacklist": targeting.worker_blacklist,
        "trusted_workers": targeting.trusted_workers,
        "validated_backends": targeting.validated_backends,
        "slow_workers": targeting.slow_workers,
        "n": request.n,
        "max_length": request.max_length,
        "max_context_length": request.max_context_length,
        "active": is_active,
        "quote": request.quote,
        "upfront": request.upfront.required_kudos if request.upfront.is_held else None,
        "address": request.address,
        "client_agent": request.client_agent,
        "proxied_account": request.proxied_account,
        "webhook": request.webhook,
        "now": now,
        "is_chat": chat is not None,
        **_activation_columns(request, requester=requester, now=now),
    }
    if not is_active:
        # An inactive row claims nothing and is not in the queue's order: a repeat of it queues normally (OPK-54).
        columns |= {"order_key": None, "tax": Decimal(0), "operation_key": None, "operation_fingerprint": None}
    if chat is None:
        columns |= dict.fromkeys(("messages", "extras", "context_adjustments", "needs", "tools_temperature"))
        columns |= {"feature_mask": 0, "conformance": Conformance.STRICT.value}
    else:
        columns |= {
            "messages": _json(chat.messages),
            "extras": _json_or_null(chat.extras),
            "context_adjustments": _json_or_null(chat.context_adjustments),
            "needs": list(chat.needs.capabilities),
            "feature_mask": chat.needs.feature_mask,
            "tools_temperature": chat.needs.tools_temperature,
            "conformance": chat.conformance.value,
        }
    sql.execute(sql.load(__file__, "store_request.sql"), columns)


def _activation_columns(request: NewRequest, *, requester: Requester, now: datetime) -> dict[str, object]:
    """Return what a request gets the moment it becomes active."""
    seed = queue_order.seed_of(
        balance=requester.posted_kudos or Decimal(0),
        is_flagged=requester.is_flagged,
        is_downgraded=request.is_downgraded,
    )
    return {
        "order_key": queue_order.order_key(seed=seed, activated_at=now),
        "tax": pricing.tax(),
        "operation_key": None if request.operation is None else request.operation.key,
        "operation_fingerprint": None if request.operation is None else request.operation.fingerprint,
        "expiry": now + timedelta(seconds=REQUEST_LIFE_SECONDS),
    }


def _lock_payer(requester: Requester) -> None:
    assert requester.user_id is not None, "the key was resolved"
    locked.list_accounts(user_id=requester.user_id)


def _require_concurrency(request: NewRequest, requester: Requester) -> None:
    """Count again under the lock, the request just written included; an early look came before."""
    assert requester.user_id is not None, "the key was resolved"
    count = waiting_slots.count(user_id=requester.user_id, models=request.models)
    shared_checks.require_concurrency(requester, waiting_slots=count)


def _cover(request: NewRequest, *, request_id: UUID, requester: Requester, charge: Decimal, now: datetime) -> None:
    """Make sure that what the request may cost is there: under the shared key, and of the user when it is held.

    `charge` is what the shared key is charged at once.
    """
    assert connection.in_atomic_block, "kudos are held in the transaction that writes the request"
    assert requester.account_id is not None, "every user with a key has a balance"
    needed = request.upfront
    if requester.shared_key_id is not None and not spending.charge_shared_key(
        # A key that others used up meanwhile covers nothing, a request lowered to what is free included.
        shared_key_id=requester.shared_key_id,
        kudos=charge,
        needed=max(needed.required_kudos, HUNDREDTH),
    ):
        if not needed.required_kudos:
            raise SharedKeyEmpty
        raise _refusal_for_kudos(
            SharedKeyInsufficientKudos(
                left_kudos=requester.left_kudos or Decimal(0), required_kudos=needed.required_kudos
            ),
            needed,
        )
    if needed.is_held:
        try:
            upfront.place(request_id=request_id, account_id=requester.account_id, kudos=needed.required_kudos, now=now)
        except InsufficientKudos:
            raise _refusal_for_kudos(
                KudosUpfront(
                    needed_kudos=needed.required_kudos,
                    length_key="max_length" if request.chat is None else "max_tokens",
                    max_length=request.max_length,
                    allowance=needed.allowance_tokens,
                ),
                needed,
            ) from None
    if requester.max_text_tokens is not None and request.max_length > requester.max_text_tokens:
        raise BadRequest(
            f"This shared key is for outputs of at most {requester.max_text_tokens} tokens, and the request asks for "
            f"{request.max_length}."
        )


def _refusal_for_kudos(refusal: HordeError, needed: Upfront) -> HordeError:
    """Return what a requester is told who has too little: of a request nobody can serve, that (ALW-07, ALW-08)."""
    return refusal if needed.can_be_served else NoAbleWorker()


def _take_tax(request_id: UUID, *, requester: Requester, now: datetime) -> None:
    assert requester.account_id is not None, "every user with a key has a balance"
    ledger.post(
        [
            NewTransfer(
                idempotency_key=f"tax:{request_id}",
                debit_account=requester.account_id,
                credit_account=HouseAccount.TAX,
                amount=pricing.tax(),
                kind=TransferKind.TAX,
                cause=request_id,
            )
        ],
        now=now,
    )


def _json(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)


def _json_or_null(value: object) -> Jsonb | None:
    return None if value is None else _json(value)
