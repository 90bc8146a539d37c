"""Tell whoever waits for a chat request that something happened: best effort, after the commit, never any text."""

from functools import partial
from uuid import UUID

import orjson
from django.db import transaction

from hordechat.contract.vocabulary import CompletionEvent
from hordechat.infra import redis


def channel_of(request_id: UUID) -> str:
    """Return the channel a request's signals go to (SIG-01)."""
    return f"horde:chat:{request_id}"


def publish_after_commit(
    request_id: UUID,
    event: CompletionEvent,
    *,
    generations: int,
    fault_reason: str | None = None,
    fault_rc: str | None = None,
) -> None:
    """Publish one event once the open transaction has committed, whatever other callbacks do.

    `generations` counts the stored results. Only a `faulted` event may have a reason and its code (SIG-06, SIG-07). A
    failure is logged and counted, never raised.
    """
    message: dict[str, object] = {"id": str(request_id), "event": event.value, "generations": generations}
    if fault_reason is not None:
        message |= {"fault_reason": fault_reason, "fault_rc": fault_rc}
    transaction.on_commit(partial(_publish, channel_of(request_id), orjson.dumps(message).decode()), robust=True)


def _publish(channel: str, body: str) -> None:
    redis.best_effort("completion signal", lambda: redis.chat_signals().publish(channel, body))
