"""Who submits a request, in one statement: the user behind an API key or a shared key, and what they may."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from billing_app.rules.accounts import ANONYMOUS_USER_ID
from billing_app.selectors import keys
from hordechat.infra import sql


@dataclass(frozen=True, kw_only=True)
class Requester:
    """The user who pays, the key they or somebody else called with, and whether the site takes requests."""

    is_in_maintenance: bool
    user_id: int | None
    """None for a key nobody has."""
    account_id: int | None
    posted_kudos: Decimal | None
    concurrency: int | None
    """How many slots the user may have waiting."""
    is_deleted: bool
    is_flagged: bool
    is_trusted: bool
    is_service: bool
    api_key_id: int | None
    shared_key_id: UUID | None
    left_kudos: Decimal | None
    """What may still be spent under the shared key; None: as much as its owner has."""
    max_text_tokens: int | None
    expires_at: datetime | None
    """When the shared key ends."""
    waiting_slots: int

    @property
    def is_anonymous(self) -> bool:
        """Whether the user is the one all keyless callers share."""
        return self.user_id == ANONYMOUS_USER_ID


def find(*, api_key: str, models: Sequence[str]) -> Requester:
    """Return who submits; `models` narrows what counts as waiting for the anonymous user, who is many people."""
    found = sql.find_one(
        sql.load(__file__, "requester.sql"),
        {
            "key_hashes": keys.candidate_hashes(api_key),
            "shared_key_id": keys.parse_shared(api_key),
            "models": list(models),
        },
        Requester,
    )
    assert found is not None, "requester.sql always returns one row"
    return found
