"""May this worker serve this request? Pure rules, the same for the pop, for availability and for what they refuse.

The queue's statements apply most of them in SQL first, as cheap filters; what passes there is judged here again
(ELG-02), and a candidate that is refused here is counted under its reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from hordechat.contract.pop import ChatDeclaration
from hordechat.contract.vocabulary import Capability, ImageTransport
from workers_app.rules.capabilities import BITS
from workers_app.rules.speed import lease_capacity

VISION = BITS[Capability.VISION.value]
CARRIES_IMAGES = frozenset({ImageTransport.URL.value, ImageTransport.BASE64.value})
"""What carries an image; `messages_url` is declared beside these (DCL-26)."""


class RefusalReason(StrEnum):
    """Why a worker may not take a request, as `skipped` names it."""

    MAINTENANCE = "maintenance"
    """Not told: the worker's own owner wants no other requests."""
    UNTRUSTED = "untrusted"
    WORKER_ID = "worker_id"
    MODELS = "models"
    MAX_CONTEXT_LENGTH = "max_context_length"
    MAX_LENGTH = "max_length"
    CHAT_JOBS = "chat_jobs"
    CHAT_MODEL = "chat_model"
    CHAT_FEATURES = "chat_features"
    IMAGE_TRANSPORTS = "image_transports"
    TOOLS_MAX_TEMPERATURE = "tools_max_temperature"
    LEASE_SPEED = "lease_speed"
    BRIDGE_VERSION = "bridge_version"
    """The backend is not validated, and the request wants one that is."""
    PERFORMANCE = "performance"
    """The worker is slow, and the request wants none that is."""


UNTOLD = frozenset({RefusalReason.MAINTENANCE})


@dataclass(frozen=True, kw_only=True)
class WorkerSnapshot:
    """A worker as matching sees it: what its latest pop declares, and what is known of it."""

    id: UUID
    owner_id: int
    is_owner_trusted: bool
    is_in_maintenance: bool
    is_backend_validated: bool
    is_slow: bool
    speed: float | None
    """Its measured tokens a second; None: unmeasured."""
    models: Sequence[str]
    max_length: int
    max_context_length: int
    declaration: ChatDeclaration
    feature_mask: int
    """The declared capabilities as bits."""

    @property
    def takes_images(self) -> bool:
        """Whether it has a transport that carries images."""
        return not CARRIES_IMAGES.isdisjoint(self.declaration.image_transports or ())

    @property
    def covered_mask(self) -> int:
        """The capabilities it can really serve: vision takes a transport too (FTR-12)."""
        return self.feature_mask if self.takes_images else self.feature_mask & ~VISION


@dataclass(frozen=True, kw_only=True)
class RequestNeeds:
    """A request as matching sees it."""

    user_id: int
    is_chat: bool
    models: Sequence[str]
    """Those it accepts; empty: any."""
    feature_mask: int
    max_length: int
    max_context_length: int
    tools_temperature: float | None
    workers: Sequence[UUID]
    worker_blacklist: bool
    trusted_workers: bool
    validated_backends: bool
    slow_workers: bool


def find_refusal(worker: WorkerSnapshot, request: RequestNeeds) -> RefusalReason | None:
    """Return the first reason why the worker may not take the request, None when it may (ELG-01, ELG-26)."""
    family = CHAT_RULES if request.is_chat else TEXT_RULES
    for rules in (FIRST_RULES, family, LAST_RULES):
        for reason, is_broken in rules:
            if is_broken(worker, request):
                return reason
    return None


def _breaks_temperature(worker: WorkerSnapshot, request: RequestNeeds) -> bool:
    """Without a limit every temperature is applied as sent, and without tools none is limited (TMP-09, TMP-10)."""
    limit, asked = worker.declaration.tools_max_temperature, request.tools_temperature
    return limit is not None and asked is not None and limit < asked


Rules = Sequence[tuple[RefusalReason, Callable[[WorkerSnapshot, RequestNeeds], bool]]]
"""Reasons with the question whether a request is refused for it, in the order they are asked."""

FIRST_RULES: Rules = (
    (RefusalReason.MAINTENANCE, lambda worker, asked: worker.is_in_maintenance and asked.user_id != worker.owner_id),
    (RefusalReason.UNTRUSTED, lambda worker, asked: asked.trusted_workers and not worker.is_owner_trusted),
    (
        RefusalReason.WORKER_ID,
        lambda worker, asked: bool(asked.workers) and (worker.id in asked.workers) == asked.worker_blacklist,
    ),
)
TEXT_RULES: Rules = (
    (
        RefusalReason.MODELS,
        lambda worker, asked: (
            not worker.declaration.accepts_prompt_jobs
            or (bool(asked.models) and set(asked.models).isdisjoint(worker.models))
        ),
    ),
    (RefusalReason.MAX_CONTEXT_LENGTH, lambda worker, asked: asked.max_context_length > worker.max_context_length),
    (RefusalReason.MAX_LENGTH, lambda worker, asked: asked.max_length > worker.max_length),
)
"""By the text limits alone (DCL-19)."""

CHAT_RULES: Rules = (
    (RefusalReason.CHAT_JOBS, lambda worker, asked: not worker.declaration.accepts_chat_jobs),  # noqa: ARG005
    (RefusalReason.CHAT_MODEL, lambda worker, asked: worker.declaration.model_id not in asked.models),
    (RefusalReason.CHAT_FEATURES, lambda worker, asked: bool(asked.feature_mask & ~worker.feature_mask)),
    (
        RefusalReason.IMAGE_TRANSPORTS,
        lambda worker, asked: bool(asked.feature_mask & VISION) and not worker.takes_images,
    ),
    (
        RefusalReason.MAX_CONTEXT_LENGTH,
        lambda worker, asked: asked.max_context_length > (worker.declaration.max_context_length or 0),
    ),
    (RefusalReason.MAX_LENGTH, lambda worker, asked: asked.max_length > (worker.declaration.max_length or 0)),
    (RefusalReason.TOOLS_MAX_TEMPERATURE, _breaks_temperature),
    (RefusalReason.LEASE_SPEED, lambda worker, asked: asked.max_length > lease_capacity(worker.speed)),
)
"""By the declaration alone (DCL-18, ELG-13)."""

LAST_RULES: Rules = (
    (RefusalReason.BRIDGE_VERSION, lambda worker, asked: asked.validated_backends and not worker.is_backend_validated),
    (RefusalReason.PERFORMANCE, lambda worker, asked: not asked.slow_workers and worker.is_slow),
)
