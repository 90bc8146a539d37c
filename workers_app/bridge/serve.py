"""The worker's life: pop while a slot is free, serve what comes, stop cleanly."""

import asyncio
import logging
import os
import signal
from dataclasses import dataclass

from hordechat.contract.vocabulary import FaultReason
from workers_app.bridge import backoff, delivery
from workers_app.bridge.delivery import Outcome
from workers_app.bridge.horde import Horde, HordeRefused, HordeUnavailable, Popped, shown
from workers_app.bridge.values import Backend, Generation, GenerationFailed, Reply

SUBMIT_MARGIN_SECONDS = 10.0
"""What is left of the lease for handing in, or a tenth of a short lease."""
LAST_FAULT_SECONDS = 5.0
SKIPPED_LOG_SECONDS = 60.0
REFUSED_PAUSE_SECONDS = 60.0
MAX_NOTICES_REMEMBERED = 100

PASSING_REFUSALS = frozenset({"MaintenanceMode", "WorkerMaintenance", "WorkerFlaggedMaintenance", "TimeoutIP"})
"""Refusals that end without the owner changing a setting here; the bridge waits for that."""

REMEDIES = {
    "InvalidAPIKey": "Check HORDE_BRIDGE_API_KEY or the file given by --api-key-file.",
    "WrongCredentials": "The name is another account's worker: choose another --name or use that account's key.",
    "AnonForbiddenWorker": "Workers need an account of their own: register one and use its key.",
    "ChatDeclarationInvalid": "Check --model, --max-length and --max-context-length.",
}
CREDENTIALS_REMEDY = "Check the API key, and that its account may run a worker under this --name."
OTHER_REMEDY = "Check --url and the worker's options."

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """How the worker runs."""

    threads: int
    poll_seconds: float
    grace_seconds: float
    is_once: bool


class Bridge:
    """One worker between a horde and a backend."""

    def __init__(self, *, horde: Horde, backend: Backend, plan: Plan) -> None:
        self._horde = horde
        self._backend = backend
        self._plan = plan
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._slot_freed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stop_by: float | None = None
        self._pop_failures = 0
        self._backend_failures = 0
        self._is_backend_sound = False
        self._answered = 0
        self._skipped_logged_at = float("-inf")
        self._notices_seen: list[str] = []

    async def run(self) -> int:
        """Serve until a signal, a refusal or, with `is_once`, the first generation; return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            # Not loop.add_signal_handler, which Windows lacks.
            signal.signal(number, lambda received, _: loop.call_soon_threadsafe(self._on_signal, received))
        polling = asyncio.create_task(self._poll())
        await self._wait_until_stopping_or({polling})
        if not self._stopping.is_set():
            await self._wait_until_stopping_or(set(self._serving.values()))
        await self._drain(polling)
        refusal = polling.exception() if not polling.cancelled() else None
        if isinstance(refusal, HordeRefused):
            is_credentials = refusal.status in {401, 403}
            remedy = REMEDIES.get(refusal.rc, CREDENTIALS_REMEDY if is_credentials else OTHER_REMEDY)
            logger.error("The horde refuses this worker: %s %s", refusal.message, remedy)
            return 1
        if refusal is not None:
            raise refusal
        logger.info("stopped; %d replies were stored", self._answered)
        return 1 if self._plan.is_once and not self._answered else 0

    def _on_signal(self, number: int) -> None:
        if self._stopping.is_set():
            logger.warning("second signal: leaving at once")
            os._exit(128 + number)
        logger.info("stopping: %d generations have up to %g seconds", len(self._serving), self._plan.grace_seconds)
        self._stop()

    def _stop(self) -> None:
        self._stop_by = asyncio.get_running_loop().time() + self._plan.grace_seconds
        self._stopping.set()
        self._slot_freed.set()

    async def _wait_until_stopping_or(self, tasks: set[asyncio.Task[None]]) -> None:
        """Wait until all the tasks have ended or the worker is to stop."""
        stop = asyncio.create_task(self._stopping.wait())
        pending = set(tasks)
        while pending and not stop.done():
            _, pending_or_stop = await asyncio.wait({stop, *pending}, return_when=asyncio.FIRST_COMPLETED)
            pending = {task for task in pending if task in pending_or_stop}
        stop.cancel()

    # Taking work

    async def _poll(self) -> None:
        """Pop until the worker stops.

        Raises:
            HordeRefused: the worker gets no work as it is.
        """
        while await self._has_free_slot():
            if not await self._is_backend_ready():
                continue
            self._slot_freed.clear()
            try:
                popped = await self._horde.pop()
            except HordeUnavailable as failure:
                self._pop_failures += 1
                pause = backoff.delay_seconds(self._pop_failures, failure.retry_after_seconds)
                logger.warning("the horde does not answer (%s); the next try is in %.1f seconds", failure, pause)
                await _rest(self._stopping, pause)
                continue
            except HordeRefused as refusal:
                if refusal.rc not in PASSING_REFUSALS:
                    raise
                logger.warning("no work for now: %s Asking again each minute.", refusal.message)
                await _rest(self._stopping, backoff.jitter(REFUSED_PAUSE_SECONDS))
                continue
            self._pop_failures = 0
            self._log_notices(popped)
            if popped.generation is not None:
                self._start(popped.generation)
            elif popped.unusable_id is not None:
                await self._return_unusable(popped.unusable_id)
            else:
                # A slot that was freed since the pop began ends this pause at once.
                await _rest(self._slot_freed, backoff.jitter(self._plan.poll_seconds))
                continue
            if self._plan.is_once:
                return

    async def _has_free_slot(self) -> bool:
        """Wait for a slot; False when the worker is to stop instead."""
        while len(self._serving) >= self._plan.threads and not self._stopping.is_set():
            self._slot_freed.clear()
            await self._slot_freed.wait()
        return not self._stopping.is_set()

    async def _is_backend_ready(self) -> bool:
        """Look at the backend before the first pop and after each failure: a worker that drops its work is paused."""
        if self._is_backend_sound:
            return True
        if self._backend_failures:
            await _rest(self._stopping, backoff.delay_seconds(self._backend_failures))
        problem = await self._backend.find_problem()
        if problem is not None:
            self._backend_failures += 1
            logger.warning("%s No work is taken until that is put right.", problem)
            return False
        self._is_backend_sound = True
        return not self._stopping.is_set()

    async def _return_unusable(self, generation_id: str) -> None:
        logger.error("generation %s: handed back, it is not a chat this bridge can read", generation_id)
        until = asyncio.get_running_loop().time() + LAST_FAULT_SECONDS
        await delivery.hand_back(self._horde, generation_id, FaultReason.GENERATION_ERROR, until=until)
        await _rest(self._stopping, backoff.jitter(self._plan.poll_seconds))

    # Serving it

    def _start(self, generation: Generation) -> None:
        task = asyncio.create_task(self._serve(generation))
        self._serving[generation.id] = task
        task.add_done_callback(lambda _: self._free_slot(generation.id))

    def _free_slot(self, generation_id: str) -> None:
        self._serving.pop(generation_id, None)
        self._slot_freed.set()

    async def _serve(self, generation: Generation) -> None:
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        margin = min(SUBMIT_MARGIN_SECONDS, generation.lease_seconds / 10)
        try:
            async with asyncio.timeout_at(generation.lease_ends - margin):
                reply = await self._backend.generate(generation.payload)
        except TimeoutError:
            failure = GenerationFailed(FaultReason.GENERATION_ERROR, "no reply before the end of the lease")
            await self._give_up(generation, failure, seconds=loop.time() - started_at)
        except GenerationFailed as reported:
            await self._give_up(generation, reported, seconds=loop.time() - started_at)
        except Exception as error:  # noqa: BLE001 the outermost loop of one generation: the others go on
            # Its text could quote the conversation; the class is enough to find the place.
            failure = GenerationFailed(FaultReason.GENERATION_ERROR, f"a fault of the bridge, {type(error).__name__}")
            await self._give_up(generation, failure, seconds=loop.time() - started_at)
        else:
            self._backend_failures = 0
            await self._hand_in(generation, reply, seconds=loop.time() - started_at)

    async def _give_up(self, generation: Generation, failure: GenerationFailed, *, seconds: float) -> None:
        if failure.reason is FaultReason.GENERATION_ERROR:
            self._backend_failures += 1
            self._is_backend_sound = False
        logger.warning("generation %s: no reply after %.1f s, %s", generation.id, seconds, failure)
        await delivery.hand_back(self._horde, generation.id, failure.reason, until=generation.lease_ends)

    async def _hand_in(self, generation: Generation, reply: Reply, *, seconds: float) -> None:
        result = await delivery.hand_in(self._horde, generation.id, reply, until=generation.lease_ends)
        described = f"{reply.characters} characters in {seconds:.1f} s, finish {reply.finish_reason}"
        if result.outcome is Outcome.STORED:
            self._answered += 1
            earned = result.note or f"{result.reward:g} kudos"
            logger.info("generation %s: reply of %s, %s", generation.id, described, earned)
            return
        logger.warning("generation %s: reply of %s, %s: %s", generation.id, described, result.outcome, result.note)
        if result.outcome is Outcome.REFUSED:
            await delivery.hand_back(self._horde, generation.id, FaultReason.REPLY_REFUSED, until=generation.lease_ends)

    # Stopping

    async def _drain(self, polling: asyncio.Task[None]) -> None:
        """Let running work end within the grace period, then hand back what is left."""
        if self._stop_by is None:
            self._stop()
        loop = asyncio.get_running_loop()
        assert self._stop_by is not None
        # A pop on its way may still bring a generation, which then has what is left of the grace period.
        await asyncio.wait({polling}, timeout=max(self._stop_by - loop.time(), 0))
        polling.cancel()
        if self._serving:
            await asyncio.wait(set(self._serving.values()), timeout=max(self._stop_by - loop.time(), 0))
        late = dict(self._serving)
        for task in late.values():
            task.cancel()
        await asyncio.gather(polling, *late.values(), return_exceptions=True)
        await asyncio.gather(*(self._hand_back_late(generation_id) for generation_id in late))

    async def _hand_back_late(self, generation_id: str) -> None:
        logger.warning("generation %s: handed back, the grace period is over", generation_id)
        try:
            await self._horde.fault(generation_id, FaultReason.GENERATION_ERROR, seconds=LAST_FAULT_SECONDS)
        except (HordeRefused, HordeUnavailable) as failure:
            logger.warning("generation %s: the fault was not taken (%s)", generation_id, type(failure).__name__)

    # What the owner should hear

    def _log_notices(self, popped: Popped) -> None:
        for notice in popped.notices:
            if notice.id not in self._notices_seen:
                self._notices_seen = [*self._notices_seen, notice.id][-MAX_NOTICES_REMEMBERED:]
                logger.warning("a message from the horde: %s", shown(notice.message))
        now = asyncio.get_running_loop().time()
        if popped.skipped and now - self._skipped_logged_at >= SKIPPED_LOG_SECONDS:
            self._skipped_logged_at = now
            counts = ", ".join(
                f"{shown(reason)} {shown(str(count))}" for reason, count in sorted(popped.skipped.items())
            )
            logger.info("waiting requests this worker may not take, by reason: %s", counts)


async def _rest(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, no longer than the given time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
