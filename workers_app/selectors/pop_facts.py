"""What a pop has to know before it may do anything, in one statement."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from billing_app.selectors import keys
from hordechat.contract.limits import MAX_WORKER_MESSAGES
from hordechat.contract.pop import ChatDeclaration
from hordechat.infra import sql


@dataclass(frozen=True, kw_only=True)
class PopFacts:
    """The user behind a key, and the worker that has the pop's name, if any."""

    user_id: int
    unique_alias: str
    is_deleted: bool
    is_flagged: bool
    is_trusted: bool
    worker_id: UUID | None
    owner_id: int | None
    last_check_in: datetime | None
    is_in_maintenance: bool | None
    maintenance_message: str | None
    speed: float | None
    """Its measured tokens a second; None: unmeasured."""
    is_paused: bool | None
    uptime_seconds: int | None
    rewarded_uptime_seconds: int | None
    told_messages: str | None
    """What operators tell it, as JSON."""
    accepts_chat_jobs: bool | None
    accepts_prompt_jobs: bool | None
    chat_features: list[str] | None
    chat_max_context_length: int | None
    chat_max_length: int | None
    chat_tools_max_temperature: float | None
    chat_model_id: str | None
    image_transports: list[str] | None

    @property
    def declaration(self) -> ChatDeclaration:
        """The declaration as the worker's row holds it."""
        return ChatDeclaration(
            accepts_chat_jobs=bool(self.accepts_chat_jobs),
            accepts_prompt_jobs=bool(self.accepts_prompt_jobs),
            features=None if self.chat_features is None else tuple(self.chat_features),
            max_context_length=self.chat_max_context_length,
            max_length=self.chat_max_length,
            tools_max_temperature=self.chat_tools_max_temperature,
            model_id=self.chat_model_id,
            image_transports=None if self.image_transports is None else tuple(self.image_transports),
        )


def find(*, api_key: str, worker_name: str, now: datetime) -> PopFacts | None:
    """Return the facts, or None for a key nobody has."""
    key_hashes = keys.candidate_hashes(api_key)
    if not key_hashes:
        return None
    return sql.find_one(
        sql.load(__file__, "pop_facts.sql"),
        {"key_hashes": key_hashes, "name": worker_name, "now": now, "most_messages": MAX_WORKER_MESSAGES},
        PopFacts,
    )


@dataclass(frozen=True, kw_only=True)
class OwnersWorkers:
    """The row of `owners_workers.sql`: how many workers an owner has."""

    all: int
    at_address: int


def count_workers(*, user_id: int, address: str | None) -> OwnersWorkers:
    """Return how many workers a user has, in all and at an address; asked for a new worker alone."""
    found = sql.find_one(
        sql.load(__file__, "owners_workers.sql"), {"user_id": user_id, "address": address}, OwnersWorkers
    )
    assert found is not None, "owners_workers.sql always returns one row"
    return found
