"""What a requester has to own before a request is queued; the hold is placed at intake and ends with the request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings

from billing_app.rules import pricing
from billing_app.rules.allowance import AllowanceCurve
from billing_app.services import holds
from hordechat.model_reference import reference
from requests_app.rules.progress import Spending


@dataclass(frozen=True, kw_only=True, slots=True)
class Upfront:
    """What a request may cost, and whether that is held before it is queued."""

    required_kudos: Decimal
    """By the dearest listed model; what a shared key has to have left, held or not (PRC-22, PRC-23)."""
    is_held: bool
    allowance_tokens: int
    """The longest output that is queued without a hold."""
    can_be_served: bool
    """Whether an online worker could take the request; if not, kudos would not help its requester."""


def judge(
    *,
    models: Sequence[str],
    max_length: int,
    n: int,
    can_be_served: bool,
    slow_workers: bool = True,
    names_workers: bool = False,
) -> Upfront:
    """Return what a request of this size needs (text-path 7.4)."""
    environment = settings.HORDE
    curve = AllowanceCurve(
        ceiling_tokens=environment.free_output_ceiling,
        floor_tokens=environment.free_output_floor,
        full_wait_seconds=environment.free_output_wait_full_seconds,
        floor_wait_seconds=environment.free_output_wait_floor_seconds,
    )
    allowance = curve.tokens_at(0 if can_be_served else None)
    required = pricing.upfront_amount([reference.find(model) for model in models], max_length=max_length, n=n)
    is_asked_for = max_length > allowance or not slow_workers or is_bound_to_workers(names_workers=names_workers)
    return Upfront(
        required_kudos=required,
        is_held=is_asked_for and required > 0,
        allowance_tokens=allowance,
        can_be_served=can_be_served,
    )


def is_bound_to_workers(*, names_workers: bool) -> bool:
    """Return whether a request that names its workers always has its kudos held, and so is never lowered instead."""
    return names_workers and bool(settings.HORDE.upfront_kudos_on_worker_list)


def hold_key(request_id: UUID) -> str:
    """Return the key of a request's hold."""
    return f"upfront:{request_id}"


def place(*, request_id: UUID, account_id: int, kudos: Decimal, now: datetime) -> None:
    """Hold kudos for a request; a part of the transaction that writes it. The hold ends with the request.

    Raises:
        InsufficientKudos: the free balance does not cover them.
    """
    holds.place(account_id=account_id, kudos=kudos, key=hold_key(request_id), cause=request_id, now=now)


def release(request_id: UUID, *, spending: Spending, now: datetime) -> None:
    """End the hold of a request of which nothing more will be charged; a part, without a hold it does nothing."""
    release_all({request_id: spending}, now=now)


def release_all(ended: Mapping[UUID, Spending], *, now: datetime) -> None:
    """End the holds of several requests; a part, to be called once in its transaction."""
    held = {request_id: spending for request_id, spending in ended.items() if spending.upfront_kudos is not None}
    tax = pricing.tax()
    holds.end(
        charged={
            hold_key(request_id): max(spending.consumed_kudos - tax, Decimal(0))
            for request_id, spending in held.items()
        },
        now=now,
    )
