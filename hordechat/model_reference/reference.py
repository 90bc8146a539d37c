"""Whether a model is known and how large it is, from this process's memory.

Without an operator's reference that is the bundled table. With one, each process takes the published copy at its start,
and looks once a minute, in a thread of its own, whether there is another: a lookup never waits for anything.
"""

import logging
import threading
import time
from dataclasses import dataclass

from django.conf import settings

from hordechat.model_reference import published, table
from hordechat.model_reference.facts import ModelFacts
from hordechat.model_reference.source import SourceBroken
from hordechat.model_reference.table import Table

logger = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class _Held:
    table: Table
    version: str | None


class ProcessCopy:
    """The table a process reads; replaced as a whole, so that a reader sees the old one or the new one."""

    def __init__(self, *, place: str) -> None:
        self._place = place
        self._held = _Held(table=table.bundled(), version=None)
        self._look_again_at = 0.0

    def get_table(self) -> Table:
        """Return the table as this process knows it, and see to it that the copy does not grow old."""
        if self._place and time.monotonic() >= self._look_again_at:
            # No lock: two threads that come here together look twice. A lock could be held by a fork's parent for ever.
            self._look_again_at = time.monotonic() + LOOK_AGAIN_SECONDS
            try:
                threading.Thread(target=self.take_published, name="model reference", daemon=True).start()
            except RuntimeError as error:  # no more threads: the copy is good for another minute
                logger.warning("the model reference was not looked at again: %s", error)
        return self._held.table

    def find(self, name: str) -> ModelFacts | None:
        """Return the facts of a model."""
        return self.get_table().find(name)

    def take_published(self) -> None:
        """Take the published copy when it is another one. Waits for Redis, within its time-outs."""
        self._look_again_at = time.monotonic() + LOOK_AGAIN_SECONDS
        imprint = published.find_imprint() if self._place else None
        if imprint is None or not imprint.is_of(self._place) or imprint.version == self._held.version:
            return
        try:
            models = published.find_models()
        except SourceBroken as fault:
            logger.warning("the published model reference cannot be used: %s", fault)
            return
        if models is not None:
            self._held = _Held(table=Table(models), version=imprint.version)


_copy = ProcessCopy(place=settings.HORDE.text_model_reference)


def start() -> None:
    """Take the published reference before the first lookup; called where a process starts."""
    _copy.take_published()


def find(name: str) -> ModelFacts | None:
    """Return the facts of a model by a worker's or client's name for it, or None when the reference lacks it."""
    return _copy.find(name)


def find_listed_name(name: str) -> str | None:
    """Return the one name the reference lists a model under, by any of its names, or None when it lacks the model."""
    return _copy.get_table().find_listed_name(name)


def is_known(name: str) -> bool:
    """Return whether the reference lists a model."""
    return find(name) is not None
