"""What a submit has to know before it decides, in one statement."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson

from billing_app.selectors import keys
from hordechat.contract.vocabulary import Conformance
from hordechat.infra import sql
from requests_app.rules import verification
from requests_app.rules.verification import ReplyContract


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
    is_over_capacity: bool
    """Whether the job was longer than its worker finishes within a lease when it was assigned."""
    lease_seconds: int
    assigned_model: str | None
    model: str
    """What served it."""
    assigned_at: datetime
    is_chat: bool
    extras: str | None
    """What the client asked beside the conversation, as JSON; None when nothing."""
    conformance: str
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

    @property
    def reply_contract(self) -> ReplyContract:
        """What the request asks of a reply (VER-02, VER-03)."""
        extras = None if self.extras is None else orjson.loads(self.extras)
        return verification.read_contract(extras, conformance=Conformance(self.conformance))

    @property
    def trust_label(self) -> str:
        """The owner's trust, as metrics count by it."""
        return str(self.is_owner_trusted).lower()


def find(*, generation_id: UUID, api_key: str) -> SubmitFacts | None:
    """Return the facts, or None for a generation nobody knows; `submitter_id` is None for a key nobody has."""
    return sql.find_one(
        sql.load(__file__, "submit_facts.sql"),
        {"generation_id": generation_id, "key_hashes": keys.candidate_hashes(api_key)},
        SubmitFacts,
    )
