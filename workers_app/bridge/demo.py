"""A backend without a model: the same conversation always gets the same, plainly labelled reply.

Where a function or a format is asked for, the reply is the smallest thing that obeys; everything else is text.
"""

import hashlib
import json
from collections.abc import Iterable

from pydantic import BaseModel, JsonValue, ValidationError

from hordechat.contract.vocabulary import Capability, FaultReason, FinishReason
from workers_app.bridge import estimate, minimal_instance
from workers_app.bridge.values import (
    FunctionCall,
    GenerationFailed,
    Payload,
    Reply,
    ToolCall,
)

CHARACTERS_PER_TOKEN = 4
CALL_ID_CHARACTERS = 24
LABEL = "[demo reply, no model behind it]"
ANY_OBJECT: JsonValue = {"const": {"demo": LABEL}}
"""The schema of the reply where any JSON object will do."""


class _Function(BaseModel):
    name: str
    parameters: JsonValue = {}


class DemoBackend:
    """Says back what it was told, or calls and fills in what it has to, within the length asked for."""

    features = frozenset(
        {
            Capability.PROMPT_OVERFLOW_REFUSED,
            # The same conversation gives the same reply, so a seed is honoured without being read.
            Capability.SEED,
            Capability.TOOLS,
            Capability.JSON_OBJECT,
            Capability.JSON_SCHEMA,
            Capability.TOOLS_WITH_RESPONSE_FORMAT,
            # What cannot be obeyed is handed back, so that no reply breaks a promise.
            Capability.TOOL_CHOICE_ENFORCED,
            Capability.SINGLE_TOOL_CALL_ENFORCED,
            Capability.STRUCTURED_OUTPUT_ENFORCED,
        }
    )

    async def find_problem(self) -> str | None:
        """Return None: nothing can be missing."""
        return None

    async def generate(self, payload: Payload) -> Reply:
        """Answer with a call, a value or the last thing the user said.

        Raises:
            GenerationFailed: the estimated prompt and the reply do not fit the context, or no reply can obey a schema.
        """
        if estimate.plain_tokens(payload) + payload.max_length > payload.max_context_length:
            raise GenerationFailed(FaultReason.PROMPT_OVERFLOW, "the estimated prompt does not fit the context")
        return compose(payload)

    async def close(self) -> None:
        """Do nothing: no connection is held."""


def compose(payload: Payload) -> Reply:
    """Return the reply to a conversation: a required call, or what the response format asks for, or text.

    Stop sequences and the length cut text alone. JSON is whole or not sent.

    Raises:
        GenerationFailed: nothing that obeys the schema was found within the length.
    """
    if payload.tools and payload.tool_choice == "required":
        call = _make_call(payload, payload.tools[0])
        return Reply(None, FinishReason.TOOL_CALLS, tool_calls=(call,))
    response_format = payload.response_format or {}
    if response_format.get("type") == "json_object":
        return Reply(_write_json(payload, ANY_OBJECT), FinishReason.STOP)
    if response_format.get("type") == "json_schema":
        described = response_format.get("json_schema")
        schema = described.get("schema") if isinstance(described, dict) else None
        return Reply(_write_json(payload, schema), FinishReason.STOP)
    return _say_back(payload)


def _make_call(payload: Payload, tool: dict[str, JsonValue]) -> ToolCall:
    try:
        function = _Function.model_validate(tool.get("function"))
    except ValidationError:
        raise GenerationFailed(FaultReason.UNBUILDABLE_GRAMMAR, "the tool offered is no function") from None
    arguments = _write_json(payload, function.parameters)
    # The conversation holds the calls made before, so that no later one of it gets the same id.
    conversation = json.dumps([payload.dump_messages(), function.name], sort_keys=True)
    digest = hashlib.sha256(conversation.encode()).hexdigest()
    return ToolCall(
        id=f"call_{digest[:CALL_ID_CHARACTERS]}", function=FunctionCall(name=function.name, arguments=arguments)
    )


def _write_json(payload: Payload, schema: JsonValue) -> str:
    return minimal_instance.write(schema, max_characters=payload.max_length * CHARACTERS_PER_TOKEN)


def _say_back(payload: Payload) -> Reply:
    """Return label and what the user said last, cut at a stop sequence or at the length."""
    said = [" ".join(message.texts()) for message in payload.messages if message.role == "user"]
    text = f"{LABEL} You said: {said[-1]}" if said else f"{LABEL} You said nothing."
    stop_at = _find_stop(text, payload.stop_sequence or ())
    length = payload.max_length * CHARACTERS_PER_TOKEN
    if stop_at is not None and stop_at <= length:
        return Reply(text[:stop_at], FinishReason.STOP)
    return Reply(text[:length], FinishReason.LENGTH if len(text) > length else FinishReason.STOP)


def _find_stop(text: str, stops: Iterable[str]) -> int | None:
    places = [text.find(stop) for stop in stops if stop]
    return min((place for place in places if place >= 0), default=None)
