"""Bring a generation's outcome to the horde, however often that takes within its lease."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from hordechat.contract.vocabulary import FaultReason
from workers_app.bridge import backoff
from workers_app.bridge.horde import Horde, HordeRefused, HordeUnavailable
from workers_app.bridge.values import Reply

MAX_ATTEMPTS = 10

STATUS_BAD_REQUEST = 400
STATUS_TOO_LARGE = 413

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Outcome(StrEnum):
    """What became of something handed to the horde."""

    STORED = "stored"
    REFUSED = "refused"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Delivery:
    """How a delivery ended: the reward of a stored reply, or the reason in a few words."""

    outcome: Outcome
    reward: float = 0.0
    note: str = ""


async def hand_in(horde: Horde, generation_id: str, reply: Reply, *, until: float) -> Delivery:
    """Submit a reply, again and again until `until` on the loop's clock while the horde cannot be reached.

    A reply whose first answer was lost meets DuplicateGen on the next try: it was stored.
    """
    try:
        reward = await _insist(lambda: horde.submit(generation_id, reply), until=until)
    except HordeRefused as refusal:
        if refusal.rc == "DuplicateGen":
            return Delivery(Outcome.STORED, note="it was already stored")
        note = refusal.rc or f"HTTP status {refusal.status}"
        is_about_reply = refusal.status in {STATUS_BAD_REQUEST, STATUS_TOO_LARGE} and refusal.rc != "AbortedGen"
        return Delivery(Outcome.REFUSED if is_about_reply else Outcome.DROPPED, note=note)
    except HordeUnavailable as failure:
        return Delivery(Outcome.DROPPED, note=f"the horde could not be reached within the lease ({failure})")
    return Delivery(Outcome.STORED, reward=reward)


async def hand_back(horde: Horde, generation_id: str, reason: FaultReason, *, until: float) -> None:
    """Report a fault, again and again until `until`; one the horde knows already is as good as reported."""
    try:
        await _insist(lambda: horde.fault(generation_id, reason), until=until)
    except HordeRefused as refusal:
        logger.info("generation %s: the fault was not taken (%s)", generation_id, refusal.rc or refusal.status)
    except HordeUnavailable as failure:
        logger.warning("generation %s: the fault could not be reported (%s)", generation_id, failure)


async def _insist(call: Callable[[], Awaitable[T]], *, until: float) -> T:
    loop = asyncio.get_running_loop()
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return await call()
        except HordeUnavailable as failure:
            pause = backoff.delay_seconds(attempt, failure.retry_after_seconds)
            if attempt == MAX_ATTEMPTS or loop.time() + pause >= until:
                raise
        await asyncio.sleep(pause)
    raise AssertionError("unreachable: the last attempt returns or raises")
