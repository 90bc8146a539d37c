"""Who could serve a request about to be queued: one statement for each family (MDL-19, MDL-20)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import orjson

from hordechat.contract.limits import ONLINE_SECONDS
from hordechat.infra import sql
from requests_app.rules.targeting import Targeting

FEW_MODELS = 8
"""Up to as many models are compared one by one with those of a worker; more by a hash."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """The online workers that serve the requested models."""

    largest_context: int | None
    """The largest context a serving worker has, in tokens; None when nobody serves."""
    offers: str
    """What those of them offer that the request lets serve it, as JSON: [length, context, features] each."""
    known_workers: list[UUID]
    """Those of the named workers that exist, online or not."""

    def can_serve(self, *, max_length: int, max_context_length: int, needs: Collection[str] = ()) -> bool:
        """Return whether one of them could take the request at this size, and declares all it needs."""
        return any(
            length >= max_length and context >= max_context_length and set(needs) <= set(features)
            for length, context, features in orjson.loads(self.offers)
        )


@dataclass(frozen=True, kw_only=True)
class ChatFleet(Fleet):
    """The online chat workers of the requested models."""

    declared_models: list[str]
    """Those of the models in doubt that a worker declared, in maintenance or not."""
    serving_workers: int
    largest_length: int | None
    """The longest reply a serving worker gives, in tokens; None when nobody serves."""


@dataclass(frozen=True, kw_only=True)
class TextFleet(Fleet):
    """The online text workers of the requested models, or of any model."""


def get_for_chat(
    *,
    models: Sequence[str],
    models_in_doubt: Sequence[str],
    targeting: Targeting,
    now: datetime,
) -> ChatFleet:
    """Return the fleet; `models_in_doubt` are those the reference lacks, which a worker has to make known (MDL-06)."""
    found = sql.find_one(
        sql.load(__file__, "chat_fleet.sql"),
        {"models_in_doubt": list(models_in_doubt), **_parameters(models, targeting, now)},
        ChatFleet,
    )
    assert found is not None, "chat_fleet.sql always returns one row"
    return found


def get_for_text(*, models: Sequence[str], targeting: Targeting, now: datetime) -> TextFleet:
    """Return the fleet."""
    found = sql.find_one(
        sql.load(__file__, "text_fleet.sql"),
        {"few_models": FEW_MODELS, **_parameters(models, targeting, now)},
        TextFleet,
    )
    assert found is not None, "text_fleet.sql always returns one row"
    return found


def _parameters(models: Sequence[str], targeting: Targeting, now: datetime) -> dict[str, object]:
    """Return what both statements take; of the rules of matching they apply trust and the named workers."""
    return {
        "models": list(models),
        "workers": list(targeting.workers),
        "worker_blacklist": targeting.worker_blacklist,
        "trusted_workers": targeting.trusted_workers,
        "online_since": now - timedelta(seconds=ONLINE_SECONDS),
    }
