"""Which request holds an operation key: the claim lives in the request's row and nowhere else (OPK-24)."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from billing_app.selectors import keys
from hordechat.infra import sql


@dataclass(frozen=True, kw_only=True)
class OperationClaim:
    """A request that was submitted under an operation key."""

    request_id: UUID
    fingerprint: str
    quoted_kudos: Decimal


def find(*, api_key: str, operation_key: UUID) -> OperationClaim | None:
    """Return the claim on a key by the user behind an API key, or None when it is free or nobody has the API key."""
    return sql.find_one(
        sql.load(__file__, "claim_of_key.sql"),
        {
            "key_hashes": keys.candidate_hashes(api_key),
            "shared_key_id": keys.parse_shared(api_key),
            "operation_key": operation_key,
        },
        OperationClaim,
    )
