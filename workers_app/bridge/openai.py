"""A backend that speaks OpenAI's chat completions over HTTP, asked to count the prompt first where that is wanted."""

from collections.abc import Mapping

from pydantic import JsonValue

from hordechat.contract.vocabulary import Capability, FaultReason
from workers_app.bridge import estimate, wire
from workers_app.bridge.completion import DIALECTS, Kind, build_request, explain_failure, read_completion
from workers_app.bridge.values import GenerationFailed, Payload, Reply

MAX_REPLY_BYTES = 8 * 1024 * 1024
MAX_TOKEN_LIST_BYTES = 32 * 1024 * 1024  # an answer of /tokenize lists every token of a prompt
PROBE_SECONDS = 15.0

DEFAULT_FEATURES = frozenset({Capability.SEED, Capability.PRESENCE_PENALTY, Capability.FREQUENCY_PENALTY})


class OpenAIBackend:
    """A server with `/v1/chat/completions` at `url`, an address without the `/v1`."""

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key: str | None,
        kind: Kind,
        checks_context: bool,
        features: frozenset[Capability],
    ) -> None:
        self._url = url
        self._model = model
        self._kind = kind
        self._checks_context = checks_context
        self.features = features | ({Capability.PROMPT_OVERFLOW_REFUSED} if checks_context else frozenset())
        # A kept connection may be closed by the backend just when it is used again, and a generation fail for that.
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = wire.make_client(headers=headers, idle_connections=0)

    async def find_problem(self) -> str | None:
        """Ask the backend for its models, and to count a short prompt where every prompt will be counted."""
        try:
            answer = await wire.exchange(
                self._client,
                "GET",
                f"{self._url}/v1/models",
                seconds=PROBE_SECONDS,
                limit_bytes=MAX_REPLY_BYTES,
            )
        except wire.Unreachable as failure:
            return f"The backend at {self._url} cannot be reached ({failure})."
        if answer.status in {401, 403}:
            return "The backend refuses the key in HORDE_BRIDGE_BACKEND_KEY."
        if answer.status >= 500:  # noqa: PLR2004 the range HTTP gives to a server's own faults
            return f"The backend is not ready (HTTP status {answer.status})."
        if self._checks_context and DIALECTS[self._kind].counts_prompts:
            try:
                await self._count([{"role": "user", "content": "Hello"}], None)
            except (GenerationFailed, wire.Unreachable):
                return f"The backend does not count prompts as {self._kind} does; try --no-context-check."
        return None

    async def generate(self, payload: Payload) -> Reply:
        """Have the backend answer the conversation.

        Raises:
            GenerationFailed: the prompt does not fit, or the backend gave no usable answer.
        """
        try:
            if self._checks_context:
                await self._check_context(payload)
            answer = await wire.exchange(
                self._client,
                "POST",
                f"{self._url}/v1/chat/completions",
                body=build_request(payload, model=self._model, kind=self._kind),
                seconds=None,
                limit_bytes=MAX_REPLY_BYTES,
            )
        except wire.Unreachable as failure:
            raise GenerationFailed(FaultReason.GENERATION_ERROR, f"the backend gave no answer ({failure})") from failure
        if answer.status != 200:  # noqa: PLR2004 the one status of a completion
            raise explain_failure(answer, payload)
        return read_completion(answer.parse(), payload)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _check_context(self, payload: Payload) -> None:
        if DIALECTS[self._kind].counts_prompts:
            tokens = await self._count(payload.dump_messages(), payload)
        else:
            tokens = estimate.careful_tokens(payload)
        if tokens + payload.max_length > payload.max_context_length:
            raise GenerationFailed(
                FaultReason.PROMPT_OVERFLOW,
                f"{tokens} prompt tokens and {payload.max_length} for the reply are above {payload.max_context_length}",
            )

    async def _count(self, messages: list[dict[str, JsonValue]], payload: Payload | None) -> int:
        """Return how many tokens the backend makes of a conversation under its own chat template."""
        conversation: dict[str, object] = {"messages": messages}
        if payload is not None and payload.tools:
            conversation["tools"] = payload.tools
        if self._kind is Kind.VLLM:
            counted = await self._ask("/tokenize", {"model": self._model, **conversation})
            count = counted.get("count")
        else:
            rendered = await self._ask("/apply-template", conversation)
            options = {"content": rendered.get("prompt"), "add_special": True, "parse_special": True}
            tokens = (await self._ask("/tokenize", options)).get("tokens")
            count = len(tokens) if isinstance(tokens, list) else None
        if not isinstance(count, int):
            raise GenerationFailed(FaultReason.GENERATION_ERROR, "the backend did not count the prompt")
        return count

    async def _ask(self, route: str, body: Mapping[str, object]) -> dict[str, object]:
        answer = await wire.exchange(
            self._client,
            "POST",
            f"{self._url}{route}",
            body=body,
            seconds=PROBE_SECONDS,
            limit_bytes=MAX_TOKEN_LIST_BYTES,
        )
        value = answer.parse()
        if answer.status != 200 or not isinstance(value, dict):  # noqa: PLR2004 the one status of an answer
            raise GenerationFailed(FaultReason.GENERATION_ERROR, f"the backend answered {route} with {answer.status}")
        return value
