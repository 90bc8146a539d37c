"""What a pop says about its worker, and when it rewrites the worker's row."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from hordechat.contract.limits import CHECK_IN_WINDOW_SECONDS, MAX_WORKER_MODELS
from hordechat.contract.pop import ChatDeclaration, PopBody


@dataclass(frozen=True, kw_only=True)
class CheckIn:
    """What a pop says about its worker, in the form it is stored in."""

    name: str
    bridge_agent: str
    models: tuple[str, ...]
    threads: int
    max_length: int
    max_context_length: int
    nsfw: bool
    declaration: ChatDeclaration
    address: str | None
    now: datetime

    @classmethod
    def of(cls, pop: PopBody, *, declaration: ChatDeclaration, address: str | None, now: datetime) -> "CheckIn":
        """Return the check-in a pop makes."""
        return cls(
            name=pop.name,
            bridge_agent=pop.bridge_agent,
            models=tuple(pop.models[:MAX_WORKER_MODELS]),
            threads=pop.threads,
            max_length=pop.max_length,
            max_context_length=pop.max_context_length,
            nsfw=pop.nsfw,
            declaration=declaration,
            address=address,
            now=now,
        )


@dataclass(frozen=True, kw_only=True)
class CheckedInWorker:
    """The worker behind a pop, as this pop declares it: what matching and assignment need of it."""

    id: UUID
    owner_id: int
    is_in_maintenance: bool
    declaration: ChatDeclaration
    feature_mask: int


def is_inside_window(*, last_check_in: datetime, now: datetime) -> bool:
    """Return whether a pop comes so soon after a check-in that it leaves the row alone."""
    return now - last_check_in < timedelta(seconds=CHECK_IN_WINDOW_SECONDS)
