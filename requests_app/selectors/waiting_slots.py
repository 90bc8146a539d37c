"""How much of the queue one user has."""

from collections.abc import Sequence
from dataclasses import dataclass

from billing_app.rules.accounts import ANONYMOUS_USER_ID
from hordechat.infra import sql


@dataclass(frozen=True, kw_only=True)
class WaitingSlots:
    """The row of `waiting_slots.sql`."""

    count: int


def count(*, user_id: int, models: Sequence[str]) -> int:
    """Return the slots that count against a user's limit for a request of these models."""
    found = sql.find_one(
        sql.load(__file__, "waiting_slots.sql"),
        {"user_id": user_id, "models": list(models), "any_models": user_id != ANONYMOUS_USER_ID or not models},
        WaitingSlots,
    )
    assert found is not None, "waiting_slots.sql always returns one row"
    return found.count
