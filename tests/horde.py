"""Short words for tests that walk a request: people with keys, a worker's pop, a client's submit, a reply.

Everything goes through the URLs; answers are `(status, body)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import orjson
from django.db import connection
from django.test import Client

from billing_app.models import SharedKey
from billing_app.services import accounts
from hordechat.contract.vocabulary import Capability
from hordechat.infra import clock

MODEL = "demo/echo"
Answer = tuple[int, dict[str, Any]]

CONVERSATION = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello there"}]
DECLARATION = {
    "chat_jobs": True,
    "prompt_jobs": False,
    "chat_features": ["prompt_overflow_refused"],
    "chat_limits": {"max_context_length": 8192, "max_length": 1024},
    "model_id": MODEL,
}
ABLE: Mapping[str, Any] = {"chat_features": sorted(Capability)}
"""The declaration of a worker that has every feature and gives every guarantee."""


def chat_body(**changes: Any) -> dict[str, object]:
    """Return a usual chat submit; a value of None leaves the key out."""
    body = {"model": MODEL, "messages": CONVERSATION, "max_tokens": 64, **changes}
    return {key: value for key, value in body.items() if value is not None}


def text_body(**changes: Any) -> dict[str, object]:
    """Return a usual text submit; a value of None leaves the key out."""
    body = {"prompt": "Once upon a time", **changes}
    return {key: value for key, value in body.items() if value is not None}


def pop_body(**changes: Any) -> dict[str, object]:
    """Return the pop of a chat worker; a value of None leaves the key out."""
    body = {"name": "worker one", "models": [MODEL], **DECLARATION, **changes}
    return {key: value for key, value in body.items() if value is not None}


def reply_body(generation_id: str, **changes: Any) -> dict[str, object]:
    """Return a usual reply; a value of None leaves the key out."""
    body = {
        "id": generation_id,
        "message": {"role": "assistant", "content": "Hello yourself"},
        "finish_reason": "stop",
        "model_id": MODEL,
        **changes,
    }
    return {key: value for key, value in body.items() if value is not None}


@dataclass(frozen=True)
class Person:
    """Somebody with an API key."""

    id: int
    api_key: str


def make_person(alias: str, *, kudos: int = 0, is_trusted: bool = False, now: datetime | None = None) -> Person:
    """Make a user with a balance and a key."""
    made = accounts.create_user(alias=alias, kudos=Decimal(kudos), is_trusted=is_trusted, now=now or clock.now())
    return Person(id=made.id, api_key=made.api_key)


@dataclass
class Horde:
    """The API, as a client and a worker call it."""

    requester: Person
    owner: Person
    http: Client = field(default_factory=Client)

    def call(
        self, method: str, path: str, body: object = None, *, api_key: str | None = None, **headers: str
    ) -> Answer:
        """Send one request and return its status and JSON."""
        response = self.http.generic(
            method,
            f"/api/v2/{path}",
            b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body),
            content_type="application/json",
            headers=headers | ({} if api_key is None else {"apikey": api_key}),
        )
        return response.status_code, orjson.loads(response.content)

    def submit(self, body: object = None, *, api_key: str | None = None, **changes: Any) -> Answer:
        """Submit a chat request as the requester."""
        sent = chat_body(**changes) if body is None else body
        return self.call("POST", "generate/chat/async", sent, api_key=api_key or self.requester.api_key)

    def pop(self, *, api_key: str | None = None, **changes: Any) -> Answer:
        """Pop as the owner's worker."""
        return self.call("POST", "generate/text/pop", pop_body(**changes), api_key=api_key or self.owner.api_key)

    def reply(self, generation_id: str, *, api_key: str | None = None, **changes: Any) -> Answer:
        """Submit a reply as the owner's worker."""
        sent = reply_body(generation_id, **changes)
        return self.call("POST", "generate/text/submit", sent, api_key=api_key or self.owner.api_key)

    def pop_text(self, *, api_key: str | None = None, **changes: Any) -> Answer:
        """Pop as a worker of the owner's that takes text alone."""
        sent = {"name": "text worker", "models": [MODEL], **changes}
        return self.call("POST", "generate/text/pop", sent, api_key=api_key or self.owner.api_key)

    def reply_text(self, generation_id: str, text: str = "there was a horde", **changes: Any) -> Answer:
        """Submit a text job's reply as the owner's worker."""
        sent = {"id": generation_id, "generation": text, **changes}
        return self.call("POST", "generate/text/submit", sent, api_key=self.owner.api_key)

    def fault(self, generation_id: str, **changes: Any) -> Answer:
        """Give a job back as the owner's worker."""
        return self.reply(generation_id, message=None, finish_reason=None, state="faulted", **changes)

    def status(self, request_id: str) -> Answer:
        """Read a chat request's status."""
        return self.call("GET", f"generate/chat/status/{request_id}")

    def submit_text(self, *, api_key: str | None = None, **changes: Any) -> Answer:
        """Submit a text request as the requester."""
        return self.call("POST", "generate/text/async", text_body(**changes), api_key=api_key or self.requester.api_key)

    def text_status(self, request_id: str) -> Answer:
        """Read a text request's status."""
        return self.call("GET", f"generate/text/status/{request_id}")

    def queued_text(self, **changes: Any) -> str:
        """Submit a text request and return its id; nobody serves it."""
        status, body = self.submit_text(**changes)
        assert status == 202, body
        request_id: str = body["id"]
        return request_id

    def share_key(self, person: Person, **columns: Any) -> str:
        """Make a shared key of somebody's and return it; columns as in the table."""
        key = SharedKey.objects.create(id=uuid4(), user_id=person.id, **columns)
        return str(key.id)

    def cancel(self, request_id: str) -> Answer:
        """Cancel a chat request."""
        return self.call("DELETE", f"generate/chat/status/{request_id}")

    def queued(self, **changes: Any) -> str:
        """Bring a worker online, submit a request and return its id."""
        self.pop(models=[MODEL])
        status, body = self.submit(**changes)
        assert status == 202, body
        request_id: str = body["id"]
        return request_id

    def in_flight(self, *, declared: Mapping[str, Any] | None = None, **changes: Any) -> tuple[str, str]:
        """Bring a request into the hands of a worker that declares so; return its id and its generation's."""
        request_id = self.queued(**changes)
        status, body = self.pop(**declared or {})
        assert status == 200, body
        assert body["id"] is not None, "the pop has to hand the request out"
        return request_id, body["id"]

    def kudos(self, person: Person) -> Decimal:
        """Return what somebody has, exactly."""
        return Decimal(
            one_value("SELECT posted_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", [person.id])
        )


def one_value(statement: str, parameters: list[Any] | None = None) -> Any:
    """Return the first column of a statement's first row."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or [])
        row = cursor.fetchone()
    return None if row is None else row[0]


def count_rows(*tables: str) -> dict[str, int]:
    """Return how many rows each table has: a refusal leaves them all as they were."""
    return {table: one_value(f"SELECT count(*) FROM {table}") for table in tables}


TRACES = ("waiting_prompts", "queue_rows", "processing_gens", "transfers", "workers", "holds")
"""Where a request or a pop would leave a trace."""
