"""What a pop says about its worker, and when it rewrites the worker's row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hordechat.contract.limits import CHECK_IN_WINDOW_SECONDS, MAX_WORKER_MODELS
from hordechat.contract.pop import ChatDeclaration, PopBody
from workers_app.rules.eligibility import WorkerSnapshot

MAX_ID_DIGITS = 18
"""What a bigint holds for certain."""


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

    snapshot: WorkerSnapshot
    first_users: tuple[int, ...]
    """Whose requests it serves first, beside its owner's."""
    is_paused: bool
    """Whether it is handed fake jobs alone, but for its owner's own requests."""
    maintenance_message: str | None
    messages: str | None
    """What operators tell it, as JSON."""


def is_inside_window(*, last_check_in: datetime, now: datetime) -> bool:
    """Return whether a pop comes so soon after a check-in that it leaves the row alone."""
    return now - last_check_in < timedelta(seconds=CHECK_IN_WINDOW_SECONDS)


RESERVED_WORDS = ("colab", "tpu", "google")
"""What no worker's name may hold, in any case."""

PERSONAL = "::"
"""Parts a personal model's name from the unique alias of the one user who may serve it."""


def find_reserved_word(name: str) -> str | None:
    """Return the reserved word a worker's name holds."""
    lowered = name.lower()
    return next((word for word in RESERVED_WORDS if word in lowered), None)


def find_foreign_model(models: Iterable[str], *, owner: str) -> str | None:
    """Return a model that belongs to another user than the one of this unique alias."""
    for model in models:
        name, _, user = model.partition(PERSONAL)
        if user and PERSONAL not in user and name and user != owner:
            return model
    return None


def find_bad_username(names: Sequence[str]) -> str | None:
    """Return a name that is not of the form `alias#id`."""
    return next((name for name in names if _id_of(name) is None), None)


def ids_of(names: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of users named as `alias#id`; the id alone counts, and the anonymous user never does."""
    return tuple(user_id for name in names if (user_id := _id_of(name)))


def _id_of(name: str) -> int | None:
    _, mark, digits = name.rpartition("#")
    if not mark or not digits.isascii() or not digits.isdecimal() or len(digits) > MAX_ID_DIGITS:
        return None
    return int(digits)
