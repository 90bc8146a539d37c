"""Whether a chat reply is what its request asked for.

It is judged by the extras the client sent, not by the worker's narrowed copy (VER-02). The rules stand in one table, in
the order they are judged. What holds under both modes is what no client can handle, such as a call to a function nobody
offered; what holds under `strict` alone is what OpenAI never returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import cast

from hordechat.contract.limits import MAX_REFUSED_VALUE_CHARACTERS
from hordechat.contract.submit import ChatReply, ChatSubmitInvalid
from hordechat.contract.vocabulary import Conformance, FinishReason
from hordechat.json_schema import judging
from hordechat.json_schema.judging import NotJson, SchemaVerdict
from requests_app.errors import ChatSubmitNonconformant

JsonObject = Mapping[str, object]


class ToolChoiceMode(StrEnum):
    """How free a model is to call tools."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"
    FUNCTION = "function"
    """One function, which has to be called."""


@dataclass(frozen=True, kw_only=True)
class ReplyContract:
    """What a request asks of its replies."""

    is_strict: bool
    functions: frozenset[str] = frozenset()
    choice: ToolChoiceMode = ToolChoiceMode.AUTO
    chosen_function: str | None = None
    takes_one_call: bool = False
    """Whether `parallel_tool_calls` was sent as false."""
    wants_object: bool = False
    """Whether the content has to be a JSON object."""
    schema: JsonObject | None = None
    """What the content has to match: the schema of a `json_schema` format with `strict: true`."""


@dataclass(frozen=True, kw_only=True)
class VerifiedReply:
    """A reply as it is stored."""

    reply: ChatReply
    dropped_tool_calls: int


def read_contract(extras: JsonObject | None, *, conformance: Conformance) -> ReplyContract:
    """Return what stored extras ask for; they were judged when the request came, so their shapes are known."""
    sent = extras or {}
    tools = cast("Sequence[JsonObject]", sent.get("tools") or ())
    choice, chosen_function = _read_choice(sent.get("tool_choice"))
    response_format = cast("JsonObject", sent.get("response_format") or {})
    json_schema = cast("JsonObject", response_format.get("json_schema") or {})
    is_strict_schema = json_schema.get("strict") is True
    return ReplyContract(
        is_strict=conformance is Conformance.STRICT,
        functions=frozenset(_function_name(tool) for tool in tools),
        choice=choice,
        chosen_function=chosen_function,
        takes_one_call=sent.get("parallel_tool_calls") is False,
        wants_object=bool(response_format) and not is_strict_schema,
        schema=cast("JsonObject", json_schema["schema"]) if is_strict_schema else None,
    )


def verify(reply: ChatReply, contract: ReplyContract) -> VerifiedReply:
    """Return the reply as it is stored: of several calls the first where one was asked for, the rest as submitted.

    Raises:
        ChatSubmitInvalid, ChatSubmitNonconformant: the first rule it breaks (VER-34).
    """
    kept = reply
    if contract.is_strict and contract.takes_one_call:
        kept = replace(reply, tool_calls=reply.tool_calls[:1])
    for rule in RULES:
        if (contract.is_strict or rule.holds_always) and (fault := rule.find_fault(kept, contract)):
            raise (ChatSubmitInvalid if rule.holds_always else ChatSubmitNonconformant)(fault)
    if contract.choice is ToolChoiceMode.FUNCTION and kept.finish_reason is FinishReason.TOOL_CALLS:
        # OpenAI ends a forced function with `stop`; the worker was told `required` and cannot know (VER-23).
        kept = replace(kept, finish_reason=FinishReason.STOP)
    return VerifiedReply(reply=kept, dropped_tool_calls=len(reply.tool_calls) - len(kept.tool_calls))


def _find_unknown_function(reply: ChatReply, contract: ReplyContract) -> str | None:
    unknown = next((call.name for call in reply.tool_calls if call.name not in contract.functions), None)
    return None if unknown is None else f"The reply calls {_quote(unknown)}, which is not one of the request's tools."


def _find_repeated_id(reply: ChatReply, contract: ReplyContract) -> str | None:  # noqa: ARG001 - one shape for all rules
    seen: set[str] = set()
    for call in reply.tool_calls:
        if call.id in seen:
            return f"Two tool calls of the reply have the id {_quote(call.id)}."
        seen.add(call.id)
    return None


def _find_unwanted_call(reply: ChatReply, contract: ReplyContract) -> str | None:
    if contract.choice is ToolChoiceMode.NONE and reply.tool_calls:
        return f"The reply calls {_quote(reply.tool_calls[0].name)}, and the request's tool_choice is 'none'."
    return None


def _find_missing_call(reply: ChatReply, contract: ReplyContract) -> str | None:
    if contract.choice is ToolChoiceMode.REQUIRED and not reply.tool_calls:
        return "The reply calls no tool, and the request's tool_choice is 'required'."
    return None


def _find_other_function(reply: ChatReply, contract: ReplyContract) -> str | None:
    if contract.choice is not ToolChoiceMode.FUNCTION:
        return None
    chosen = _quote(contract.chosen_function or "")
    if not reply.tool_calls:
        return f"The reply calls no tool, and the request's tool_choice is the function {chosen}."
    other = next((call for call in reply.tool_calls if call.name != contract.chosen_function), None)
    return (
        None if other is None else f"The reply calls {_quote(other.name)}, and the request's tool_choice is {chosen}."
    )


def _find_other_format(reply: ChatReply, contract: ReplyContract) -> str | None:
    is_call_alone = bool(reply.tool_calls) and not reply.content
    if is_call_alone or not (contract.wants_object or contract.schema is not None):
        return None
    try:
        value = judging.parse_json(reply.content or "")
    except NotJson:
        return "The reply's content is not JSON, as the request's response_format asks."
    if contract.schema is None:
        is_object = isinstance(value, dict)
        return None if is_object else "The reply's content is not a JSON object, as the request's response_format asks."
    return SCHEMA_FAULTS[judging.judge(contract.schema, value)]


SCHEMA_FAULTS = {
    SchemaVerdict.MATCHES: None,
    SchemaVerdict.DIFFERS: "The reply's content does not match the schema of the request's response_format.",
    SchemaVerdict.UNUSABLE: (
        "The schema of the request's response_format cannot be compiled, so no reply can be shown to match it."
    ),
}


@dataclass(frozen=True)
class Rule:
    """One thing a reply can break."""

    find_fault: Callable[[ChatReply, ReplyContract], str | None]
    """Returns a sentence for the worker, which quotes at most a name or an id of the reply (VER-41)."""
    holds_always: bool = False
    """Whether it holds under `best_effort` too; breaking it makes a reply invalid rather than nonconformant."""


RULES = (
    Rule(_find_unknown_function, holds_always=True),
    Rule(_find_repeated_id, holds_always=True),
    Rule(_find_unwanted_call),
    Rule(_find_missing_call),
    Rule(_find_other_function),
    Rule(_find_other_format),
)


def _read_choice(sent: object) -> tuple[ToolChoiceMode, str | None]:
    if isinstance(sent, Mapping):
        return ToolChoiceMode.FUNCTION, _function_name(sent)
    return (ToolChoiceMode.AUTO if sent is None else ToolChoiceMode(str(sent))), None


def _function_name(holder: JsonObject) -> str:
    """Return `function.name` of a tool or a tool choice."""
    return str(cast("JsonObject", holder["function"])["name"])


def _quote(value: str) -> str:
    return f"'{value[:MAX_REFUSED_VALUE_CHARACTERS]}'"
