"""What a chat submit has to know before it decides, in one statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from billing_app.selectors import keys
from hordechat.contract.limits import ONLINE_SECONDS
from hordechat.infra import sql


@dataclass(frozen=True, kw_only=True)
class IntakeFacts:
    """The user behind a key, and the online chat workers of the requested models."""

    user_id: int | None
    account_id: int | None
    posted_kudos: Decimal | None
    known_models: list[str]
    serving_workers: int
    able_workers: int
    """Those of the serving workers that declare all the request needs and whose limits it fits."""


def get(
    *,
    api_key: str,
    models: Sequence[str],
    needs: Sequence[str],
    max_length: int,
    max_context_length: int,
    now: datetime,
) -> IntakeFacts:
    """Return the facts; `user_id` is None for a key nobody has."""
    facts = sql.find_one(
        sql.load(__file__, "intake_facts.sql"),
        {
            "key_hashes": keys.candidate_hashes(api_key),
            "models": list(models),
            "needs": list(needs),
            "max_length": max_length,
            "max_context_length": max_context_length,
            "online_since": now - timedelta(seconds=ONLINE_SECONDS),
        },
        IntakeFacts,
    )
    assert facts is not None, "intake_facts.sql always returns one row"
    return facts
