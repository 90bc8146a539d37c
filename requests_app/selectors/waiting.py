"""The requests that wait for work."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import F

from requests_app.models import Request


@dataclass(frozen=True, kw_only=True)
class WaitingRequest:
    """A request of which nobody has taken every slot yet."""

    id: UUID
    is_chat: bool


def list_first(*, limit: int) -> list[WaitingRequest]:
    """Return the requests at the head of the queue. Served by waiting_prompts_in_order."""
    found = (
        Request.objects.filter(active=True, faulted=False, n__gt=0)
        .order_by(F("order_key").desc(), "created", "id")
        .values_list("id", "is_chat")[:limit]
    )
    return [WaitingRequest(id=request_id, is_chat=is_chat) for request_id, is_chat in found]
