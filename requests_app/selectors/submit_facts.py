"""What a submit has to know before it decides, in one statement."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from billing_app.selectors import keys
from hordechat.infra import sql


@dataclass(frozen=True, kw_only=True)
class SubmitFacts:
    """A generation, its request and worker, and who submits it."""

    id: UUID
    request_id: UUID
    worker_id: UUID
    is_stored: bool
    is_faulted: bool
    is_fake: bool
    """Whether it stands for no slot: its reply is answered like any other, and neither kept nor paid."""
    lease_seconds: int
    assigned_model: str | None
    model: str
    """What served it."""
    assigned_at: datetime
    is_chat: bool
    max_length: int
    shared_key_id: UUID | None
    prompt_characters: int
    requester_account: int
    worker_name: str
    bridge_agent: str
    owner_id: int
    is_owner_trusted: bool
    owner_account: int
    owner_escrow: int
    submitter_id: int | None


def find(*, generation_id: UUID, api_key: str) -> SubmitFacts | None:
    """Return the facts, or None for a generation nobody knows; `submitter_id` is None for a key nobody has."""
    return sql.find_one(
        sql.load(__file__, "submit_facts.sql"),
        {"generation_id": generation_id, "key_hashes": keys.candidate_hashes(api_key)},
        SubmitFacts,
    )
