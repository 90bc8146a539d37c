"""The last good copy of the operator's reference, in Redis, from where every process takes it.

It can be made again from its source, so losing it costs a fetch: processes keep what they hold, and the next run of the
refresh publishes it anew.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from hordechat.infra import redis
from hordechat.model_reference import source
from hordechat.model_reference.facts import ModelFacts

KEY = "horde:model-reference"

_Fields = Mapping[
    bytes | bytearray | memoryview | str | int | float, bytes | bytearray | memoryview | str | int | float
]
"""What the Redis client takes for a hash; mappings do not vary in their keys."""


@dataclass(frozen=True, kw_only=True)
class Imprint:
    """What the published copy is: of which place, which content, and when it was read. All None: there is none."""

    place: str | None
    version: str | None
    read_at: float | None

    def is_of(self, place: str) -> bool:
        """Return whether the copy was read at this place."""
        return self.place == _digest(place)


def find_imprint() -> Imprint | None:
    """Return what is published now, or None when Redis cannot tell."""
    found = redis.best_effort("model reference", lambda: redis.marks().hmget(KEY, ["place", "version", "read_at"]))
    if found is None:
        return None
    place, version, read_at = (None if value is None else str(value) for value in found)
    return Imprint(place=place, version=version, read_at=None if read_at is None else float(read_at))


def find_models() -> Mapping[str, ModelFacts] | None:
    """Return the published models, or None when there are none or Redis does not answer.

    Raises:
        SourceBroken: another version of this project published what this one cannot read.
    """
    content = redis.best_effort("model reference", lambda: redis.marks().hget(KEY, "models"))
    return None if content is None else source.parse(content).models


def publish(models: Mapping[str, ModelFacts], *, place: str, now: float) -> bool:
    """Replace the published copy at once and as a whole; return False when Redis did not take it."""
    content = source.dump(models)
    # The place may carry a password: what is stored tells only whether it is the same.
    fields: _Fields = {"place": _digest(place), "version": _digest(content), "read_at": str(now), "models": content}
    return redis.best_effort("model reference", lambda: redis.marks().hset(KEY, mapping=fields)) is not None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
