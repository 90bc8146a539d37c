"""The horde as a worker sees it: take a generation, hand in its reply or hand it back."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from hordechat.contract.vocabulary import Capability, FaultReason
from workers_app.bridge import AGENT, wire
from workers_app.bridge.values import Generation, Payload, Reply

POP_SECONDS = 30.0
SUBMIT_SECONDS = 30.0
FALLBACK_LEASE_SECONDS = 150.0
MAX_LEASE_SECONDS = 3600.0
MAX_POP_BYTES = 40 * 1024 * 1024  # the horde takes conversations of up to 36 MiB
MAX_ANSWER_BYTES = 256 * 1024
MAX_SHOWN_CHARACTERS = 300

STATUS_OK = 200
STATUS_TOO_MANY = 429
STATUS_SERVER_ERROR = 500


class HordeRefused(Exception):
    """The horde understood the call and says no; the same call again would not help."""

    def __init__(self, *, status: int, rc: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.rc = rc
        self.message = message


class HordeUnavailable(Exception):
    """The horde cannot answer now; a later call may succeed."""

    def __init__(self, why: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True)
class Declaration:
    """What the worker tells the horde about itself at every pop."""

    name: str
    model: str
    max_context_length: int
    max_length: int
    threads: int
    features: frozenset[Capability]

    def dump(self) -> dict[str, JsonValue]:
        """Return the body of a pop: chat only, one generation at a time, no images."""
        limits: dict[str, JsonValue] = {"max_context_length": self.max_context_length, "max_length": self.max_length}
        return {
            "name": self.name,
            "models": [self.model],
            **limits,
            "threads": self.threads,
            "bridge_agent": AGENT,
            "amount": 1,
            "chat_jobs": True,
            "prompt_jobs": False,
            "chat_features": list[JsonValue](sorted(self.features)),
            "chat_limits": limits,
            "model_id": self.model,
            "image_transports": [],
        }


@dataclass(frozen=True)
class Notice:
    """A note of the horde's moderators to the worker's owner."""

    id: str
    message: str


class PopAnswer(BaseModel):
    """The answer to a pop as it comes; `payload` stays unread until the answer is known to hold a chat."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    id: str | None = None
    payload: JsonValue = None
    ttl: float | None = None
    chat: bool = False
    skipped: dict[str, JsonValue] = {}
    messages: list[JsonValue] = []


@dataclass(frozen=True)
class Popped:
    """What a pop brought: a generation, one that has to go back unread, or nothing and the reasons for it."""

    generation: Generation | None = None
    unusable_id: str | None = None
    skipped: Mapping[str, JsonValue] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


def shown(text: str) -> str:
    """Make a server's words fit for a log line: one line, printable, bounded."""
    return "".join(character if character.isprintable() else " " for character in text[:MAX_SHOWN_CHARACTERS]).strip()


class Horde:
    """A client with one worker's credentials and declaration."""

    def __init__(self, *, url: str, api_key: str, declaration: Declaration) -> None:
        self._base = f"{url}/api/v2/generate/text"
        self._declaration = declaration
        self._client = wire.make_client(headers={"apikey": api_key, "Client-Agent": AGENT}, idle_connections=2)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def pop(self) -> Popped:
        """Ask for work.

        Raises:
            HordeRefused: this worker gets none as it is.
            HordeUnavailable: ask again later.
        """
        asked_at = asyncio.get_running_loop().time()
        value = await self._call("pop", self._declaration.dump(), seconds=POP_SECONDS, limit_bytes=MAX_POP_BYTES)
        try:
            answer = PopAnswer.model_validate(value)
        except ValidationError:
            raise HordeUnavailable("the answer to the pop cannot be read") from None
        notices = tuple(
            Notice(str(entry.get("id")), str(entry.get("message")))
            for entry in answer.messages
            if isinstance(entry, dict)
        )
        if answer.id is None:
            return Popped(skipped=answer.skipped, notices=notices)
        lease_seconds = min(answer.ttl or FALLBACK_LEASE_SECONDS, MAX_LEASE_SECONDS)
        try:
            payload = Payload.model_validate(answer.payload if answer.chat else None)
        except ValidationError:
            return Popped(unusable_id=answer.id, notices=notices)
        return Popped(Generation(answer.id, payload, lease_seconds, asked_at + lease_seconds), notices=notices)

    async def submit(self, generation_id: str, reply: Reply) -> float:
        """Hand in a reply and return its reward in kudos.

        Raises:
            HordeRefused: the reply was not taken.
            HordeUnavailable: it is not known whether the reply was taken.
        """
        message: dict[str, object] = {"role": "assistant", "content": reply.content}
        if reply.tool_calls:
            message["tool_calls"] = [call.model_dump() for call in reply.tool_calls]
        if reply.reasoning_content is not None:
            message["reasoning_content"] = reply.reasoning_content
        optional = {
            "native_finish_reason": reply.native_finish_reason,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "reasoning_tokens": reply.reasoning_tokens,
        }
        body = {
            "id": generation_id,
            "model_id": self._declaration.model,
            "message": message,
            "finish_reason": reply.finish_reason,
            **{key: value for key, value in optional.items() if value is not None},
        }
        answer = await self._call("submit", body, seconds=SUBMIT_SECONDS, limit_bytes=MAX_ANSWER_BYTES)
        reward = answer.get("reward")
        return float(reward) if isinstance(reward, int | float) else 0.0

    async def fault(self, generation_id: str, reason: FaultReason, *, seconds: float = SUBMIT_SECONDS) -> None:
        """Hand a generation back, so that another worker gets it at once.

        Raises:
            HordeRefused: the generation is not pending any more.
            HordeUnavailable: it is not known whether the fault arrived.
        """
        body = {
            "id": generation_id,
            "state": "faulted",
            "model_id": self._declaration.model,
            "fault_reason": reason,
        }
        await self._call("submit", body, seconds=seconds, limit_bytes=MAX_ANSWER_BYTES)

    async def _call(
        self, route: str, body: Mapping[str, object], *, seconds: float, limit_bytes: int
    ) -> dict[str, object]:
        try:
            answer = await wire.exchange(
                self._client, "POST", f"{self._base}/{route}", body=body, seconds=seconds, limit_bytes=limit_bytes
            )
        except wire.Unreachable as failure:
            raise HordeUnavailable(str(failure)) from failure
        value = answer.parse()
        members = value if isinstance(value, dict) else {}
        if answer.status == STATUS_OK and members:
            return members
        if answer.status < STATUS_SERVER_ERROR and answer.status not in {STATUS_OK, STATUS_TOO_MANY}:
            raise HordeRefused(
                status=answer.status,
                rc=shown(str(members.get("rc", ""))),
                message=_read_message(members) or f"HTTP status {answer.status} without a message.",
            )
        why = "an answer that is no JSON object" if answer.status == STATUS_OK else f"HTTP status {answer.status}"
        raise HordeUnavailable(why, retry_after_seconds=_read_retry_after(answer.headers))


def _read_message(members: Mapping[str, object]) -> str:
    """Return a refusal's words; where its message says that fields are wrong, `errors` says which."""
    message = shown(str(members.get("message", "")))
    errors = members.get("errors")
    if not isinstance(errors, dict) or not errors:
        return message
    return f"{message}: {shown('; '.join(f'{path}: {why}' for path, why in errors.items()))}"


def _read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the pause a server asks for; the form with a date is not used by the horde and counts as none."""
    value = headers.get("Retry-After", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None
