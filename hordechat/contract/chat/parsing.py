"""The reading of a chat body into a submission, in the documented order of faults."""

from collections.abc import Iterable, Mapping
from typing import cast

from hordechat.contract.chat.body import ChatBody
from hordechat.contract.chat.history import check_history
from hordechat.contract.chat.messages import read_messages
from hordechat.contract.chat.options import ChatHordeOptions
from hordechat.contract.chat.submission import ChatSubmission, JsonObject, Message, Sampling, Tool, ToolChoice
from hordechat.contract.chat.tools import (
    check_size,
    check_strict_schemas,
    read_response_format,
    read_tool_choice,
    read_tools,
)
from hordechat.contract.chat.values import refuse_unknown_keys
from hordechat.contract.limits import (
    DEFAULT_CHAT_OUTPUT_TOKENS,
)
from hordechat.contract.refusals import (
    BadRequest,
    ChatRequestConflict,
    UnsupportedChatParameter,
    validate,
)
from hordechat.contract.vocabulary import ReasoningEffort


def parse(body: Mapping[str, object]) -> ChatSubmission:
    """Judge a chat body; of several faults the first of this order is named (RFS-34).

    `body` is what strict JSON holds: UTF-8 strings and finite numbers. Nothing of it is changed, and the definitions of
    tools and formats are kept in the submission as they are.

    Raises:
        UnsupportedChatParameter: an unknown key or value, or a limit passed; the message holds its path.
        InvalidPayload, BadRequest: a wrong shape, type or range.
        TooManyStopSequences, ExcessiveStopSequence: the totals of `stop`.
        TooManyExtraSourceImages, SourceImageSizeExceeded: the caps of images, as far as a body tells their sizes.
        ChatRequestConflict: values that contradict each other.
    """
    refuse_unknown_keys("", body, known=ChatBody.model_fields)
    sent = _read_types_and_ranges(body)
    if isinstance(options := body.get("horde"), dict):
        refuse_unknown_keys("horde", options, known=ChatHordeOptions.model_fields)
    messages = read_messages(cast("list[object]", body["messages"]))
    tools = read_tools(cast("list[object] | None", body.get("tools")) or [])
    tool_choice = read_tool_choice(body.get("tool_choice"))
    response_format = read_response_format(cast("JsonObject | None", body.get("response_format")))
    check_size(tools, tool_choice, response_format)
    check_strict_schemas(tools, response_format)
    check_history(messages)
    _refuse_conflicts(sent)
    _refuse_tool_conflicts(sent, tools=tools, tool_choice=tool_choice)
    if sent.horde.openai_guards and response_format is not None and response_format.type == "json_object":
        _require_the_word_json(messages)
    return ChatSubmission(
        models=(sent.model,) if sent.model is not None else tuple(sent.models or ()),
        names_one_model=sent.model is not None,
        messages=messages,
        max_length=sent.max_tokens or sent.max_completion_tokens or DEFAULT_CHAT_OUTPUT_TOKENS,
        sampling=Sampling(
            temperature=sent.temperature,
            top_p=sent.top_p,
            frequency_penalty=sent.frequency_penalty,
            presence_penalty=sent.presence_penalty,
            seed=sent.seed,
            reasoning_effort=sent.reasoning_effort,
            stop_sequence=tuple(sent.stop or ()),
        ),
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=sent.parallel_tool_calls,
        response_format=response_format,
        is_streamed=bool(sent.stream),
        horde=sent.horde,
    )


def _read_types_and_ranges(body: Mapping[str, object]) -> ChatBody:
    """Return the top-level values; `messages`, `tools`, `tool_choice` and `response_format` are looked into later."""
    if "reasoning_effort" in body and body["reasoning_effort"] is None:
        raise BadRequest("'reasoning_effort' has to be one of " + ", ".join(ReasoningEffort) + ".")
    sent = validate(ChatBody, body)
    if sent.model is None and sent.models is None:
        raise BadRequest("One of 'model' and 'models' is required.")
    if sent.models is not None and len(set(sent.models)) < len(sent.models):
        raise BadRequest("'models' lists a model twice.")
    if sent.n not in {None, 1}:
        raise UnsupportedChatParameter.value("n", sent.n)
    return sent


def _refuse_conflicts(sent: ChatBody) -> None:
    if sent.model is not None and sent.models is not None:
        raise ChatRequestConflict("'model' and 'models' cannot be sent together.")
    lengths = {sent.max_tokens, sent.max_completion_tokens} - {None}
    if len(lengths) > 1:
        raise ChatRequestConflict("'max_tokens' and 'max_completion_tokens' differ.")
    if sent.horde.only is not None and sent.horde.ignore is not None:
        raise ChatRequestConflict("'horde.only' and 'horde.ignore' cannot be sent together.")


def _refuse_tool_conflicts(sent: ChatBody, *, tools: tuple[Tool, ...], tool_choice: ToolChoice | None) -> None:
    """Refuse what makes no sense without tools, or without the one tool it names, in OpenAI's words (TLS-08..12)."""
    if not tools:
        for key, value in {"tool_choice": tool_choice, "parallel_tool_calls": sent.parallel_tool_calls}.items():
            if value is not None:
                raise ChatRequestConflict(
                    f"Invalid value for '{key}': '{key}' is only allowed when 'tools' are specified."
                )
    elif tool_choice is not None and tool_choice.mode == "function":
        forced = tool_choice.function_name
        if forced not in {tool.name for tool in tools}:
            raise ChatRequestConflict(f"Tool choice '{forced}' not found in 'tools' parameter.")


def _require_the_word_json(messages: Iterable[Message]) -> None:
    """Refuse as OpenAI does a format no message asks for; arguments of calls do not count (HOP-12, HOP-41)."""
    if not any("json" in text.lower() for message in messages for text in message.texts):
        raise ChatRequestConflict(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        )
