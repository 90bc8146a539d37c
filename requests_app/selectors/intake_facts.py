"""What a chat submit has to know before it decides, in one statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from billing_app.rules.accounts import ANONYMOUS_USER_ID
from billing_app.selectors import keys
from hordechat.contract.limits import ONLINE_SECONDS
from hordechat.infra import sql
from requests_app.rules.sizing import Sized


@dataclass(frozen=True, kw_only=True)
class IntakeFacts:
    """The user behind a key, and the online chat workers of the requested models."""

    user_id: int | None
    account_id: int | None
    posted_kudos: Decimal | None
    concurrency: int | None
    """How many slots the user may have waiting."""
    waiting_slots: int
    known_models: list[str]
    serving_workers: int
    largest_length: int | None
    """The largest reply a serving worker gives, in tokens; None when nobody serves."""
    largest_context: int | None
    """The largest context a serving worker has, in tokens; None when nobody serves."""
    able_limits: list[list[int]]
    """The limits, as [length, context], of the serving workers that declare all the request needs."""

    def has_able_worker(self, sized: Sized) -> bool:
        """Return whether a serving worker could take the request as it was sized."""
        return any(
            length >= sized.max_length and context >= sized.max_context_length for length, context in self.able_limits
        )


def get(
    *,
    api_key: str,
    models: Sequence[str],
    needs: Sequence[str],
    now: datetime,
) -> IntakeFacts:
    """Return the facts; `user_id` is None for a key nobody has."""
    facts = sql.find_one(
        sql.load(__file__, "intake_facts.sql"),
        {
            "key_hashes": keys.candidate_hashes(api_key),
            "models": list(models),
            "anonymous": ANONYMOUS_USER_ID,
            "needs": list(needs),
            "online_since": now - timedelta(seconds=ONLINE_SECONDS),
        },
        IntakeFacts,
    )
    assert facts is not None, "intake_facts.sql always returns one row"
    return facts
