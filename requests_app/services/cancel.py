"""Cancel requests, as their clients wish or for the site's maintenance.

Stored results stay; generations in flight go on and are paid.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db import transaction

from hordechat.contract.status import ChatStatus, RequestStatus, TextStatus
from hordechat.contract.vocabulary import CompletionEvent
from hordechat.infra import sql
from hordechat.infra.transactions import retry_on_conflict
from requests_app.errors import RequestNotFound
from requests_app.selectors import progress, status, waiting
from requests_app.services import completion_signal, upfront

CANCEL_PAGE_ROWS = 200

Status = TypeVar("Status", bound=RequestStatus)


def cancel_chat(*, request_id: UUID, now: datetime) -> ChatStatus:
    """Cancel a chat request and return its status as it was just before; a second cancel changes nothing.

    Raises:
        RequestNotFound: there is no such chat request.
    """
    return _cancel(request_id, lambda: status.find_chat(request_id=request_id, now=now), is_chat=True, now=now)


def cancel_text(*, request_id: UUID, now: datetime) -> TextStatus:
    """Cancel a text request and return its status as it was just before; a second cancel changes nothing.

    Raises:
        RequestNotFound: there is no such text request.
    """
    return _cancel(request_id, lambda: status.find_text(request_id=request_id, now=now), is_chat=False, now=now)


def cancel_all_waiting(*, now: datetime, tell: Callable[[int], None]) -> int:
    """Cancel every request that waits for work, each in a transaction of its own, and return how many they were.

    `tell` hears the number so far, page by page. What is in flight goes on; a call that was stopped can be repeated.
    """
    cancelled = 0
    while page := waiting.list_first(limit=CANCEL_PAGE_ROWS):
        cancelled += sum(_claim(request.id, is_chat=request.is_chat, now=now) for request in page)
        tell(cancelled)
    return cancelled


def _cancel(request_id: UUID, find: Callable[[], Status | None], *, is_chat: bool, now: datetime) -> Status:
    before = find()
    if before is None:
        raise RequestNotFound(request_id=str(request_id))
    if not before.done:
        _claim(request_id, is_chat=is_chat, now=now)
    return before


@retry_on_conflict
def _claim(request_id: UUID, *, is_chat: bool, now: datetime) -> bool:
    """Cancel one request; return whether this call did it."""
    with transaction.atomic(durable=True):
        # The request row is locked in a statement of its own: what follows then sees a slot returned meanwhile.
        sql.execute(sql.load(__file__, "lock_request.sql"), {"request_id": request_id})
        if not sql.execute(sql.load(__file__, "cancel.sql"), {"request_id": request_id, "now": now}):
            return False
        found = progress.find(request_id=request_id)
        assert found is not None, "the request's row is locked by this transaction"
        if is_chat:
            completion_signal.publish_after_commit(request_id, CompletionEvent.CANCELLED, generations=found.stored)
        if found.is_done:
            upfront.release(request_id, spending=found, now=now)
    return True
