"""A user as the API shows one: the person, and the workers the person runs."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from billing_app.rules.accounts import ANONYMOUS_USER_ID
from billing_app.selectors import users
from hordechat.contract.status import UserDetails
from hordechat.infra import sql

MAX_SHOWN_WORKERS = 1000


@dataclass(frozen=True, kw_only=True)
class OwnedWorker:
    """The row of `owned_workers.sql`."""

    id: UUID


def find_self(*, api_key: str, now: datetime) -> UserDetails | None:
    """Return what the user behind a key may know of themself, or None for a key nobody has."""
    profile = users.find_by_key(api_key, now=now)
    if profile is None:
        return None
    workers = (
        []
        if profile.id == ANONYMOUS_USER_ID
        else sql.fetch_all(
            sql.load(__file__, "owned_workers.sql"), {"user_id": profile.id, "limit": MAX_SHOWN_WORKERS}, OwnedWorker
        )
    )
    return UserDetails(
        username=profile.unique_alias,
        id=profile.id,
        kudos=profile.kudos,
        evaluating_kudos=profile.evaluating_kudos,
        concurrency=profile.concurrency,
        account_age=profile.account_age_seconds,
        trusted=profile.is_trusted,
        flagged=profile.is_flagged,
        moderator=profile.is_moderator,
        service=profile.is_service,
        education=profile.is_education,
        customizer=profile.is_customizer,
        deleted=profile.is_deleted,
        pseudonymous=profile.is_pseudonymous,
        contact=profile.contact,
        worker_count=len(workers),
        worker_ids=[str(worker.id) for worker in workers],
    )
