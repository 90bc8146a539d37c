"""Which workers a request lets serve it, whatever they declare."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class Targeting:
    """The restrictions a client sets beside models and limits."""

    workers: Sequence[UUID] = ()
    """Only these serve it, or, with `worker_blacklist`, none of these; empty: anybody."""
    worker_blacklist: bool = False
    trusted_workers: bool = False
    validated_backends: bool = False
    slow_workers: bool = True
