"""The reading of a chat body into a submission.

Of several faults the first of this order is named (RFS-34): unknown top-level keys, wrong types and ranges, unknown
horde keys, the count of messages, the messages in order, the total of their text, tool shapes and limits, history,
conflicts.
"""

from collections.abc import Mapping

from hordechat.contract.chat.body import ChatBody, ChatMessage
from hordechat.contract.chat.body import TextPart as TextPartBody
from hordechat.contract.chat.options import ChatHordeOptions
from hordechat.contract.chat.submission import ChatSubmission, Message, Part, Sampling, TextPart
from hordechat.contract.limits import (
    DEFAULT_CHAT_OUTPUT_TOKENS,
    MAX_CHAT_MESSAGE_COUNT,
    MAX_CHAT_TEXT_BYTES,
    MAX_MESSAGE_NAME_CHARACTERS,
    MAX_STOP_SEQUENCE_CHARACTERS,
    MAX_STOP_SEQUENCES,
)
from hordechat.contract.refusals import (
    BadRequest,
    ChatRequestConflict,
    ExcessiveStopSequence,
    TooManyStopSequences,
    UnsupportedChatParameter,
    validate,
)
from hordechat.contract.vocabulary import ReasoningEffort, Role


def parse(body: Mapping[str, object]) -> ChatSubmission:
    """Judge a chat body.

    Raises:
        UnsupportedChatParameter: an unknown key or value, or a limit passed; the message holds its path.
        InvalidPayload, BadRequest: a wrong shape, type or range.
        ChatRequestConflict: values that contradict each other.
        TooManyStopSequences, ExcessiveStopSequence: the totals of `stop`.
    """
    for key in body:
        if key not in ChatBody.model_fields:
            raise UnsupportedChatParameter.key(key)
    if "reasoning_effort" in body and body["reasoning_effort"] is None:
        raise BadRequest("'reasoning_effort' has to be one of " + ", ".join(ReasoningEffort) + ".")
    checked = validate(ChatBody, body)
    horde = body.get("horde")
    for key in horde if isinstance(horde, dict) else ():
        if key not in ChatHordeOptions.model_fields:
            raise UnsupportedChatParameter.key(f"horde.{key}")
    messages = _read_messages(checked.messages)
    if checked.n not in {None, 1}:
        raise UnsupportedChatParameter.value("n", checked.n)
    if checked.horde.only is not None and checked.horde.ignore is not None:
        raise ChatRequestConflict("'horde.only' and 'horde.ignore' cannot be sent together.")
    # W7: what the parser does not read into the submission yet is refused by name; see `_refuse_unread`.
    _refuse_unread(checked)
    return ChatSubmission(
        models=_read_models(checked),
        names_one_model=checked.models is None,
        messages=messages,
        max_length=_read_max_length(checked),
        sampling=Sampling(
            temperature=checked.temperature,
            top_p=checked.top_p,
            frequency_penalty=checked.frequency_penalty,
            presence_penalty=checked.presence_penalty,
            seed=checked.seed,
            reasoning_effort=checked.reasoning_effort,
            stop_sequence=_read_stop(checked.stop),
        ),
        is_streamed=bool(checked.stream),
        horde=checked.horde,
    )


def _refuse_unread(body: ChatBody) -> None:
    if body.tools:
        raise UnsupportedChatParameter.not_yet("tools")
    if body.tool_choice is not None:
        raise UnsupportedChatParameter.not_yet("tool_choice")
    if body.parallel_tool_calls is not None:
        raise UnsupportedChatParameter.not_yet("parallel_tool_calls")
    if body.response_format not in (None, {"type": "text"}):
        raise UnsupportedChatParameter.not_yet("response_format")


def _read_models(body: ChatBody) -> tuple[str, ...]:
    if body.model is not None and body.models is not None:
        raise ChatRequestConflict("'model' and 'models' cannot be sent together.")
    if body.model is not None:
        return (body.model,)
    if body.models is None:
        raise BadRequest("One of 'model' and 'models' is required.")
    if len(set(body.models)) < len(body.models):
        raise BadRequest("'models' lists a model twice.")
    return tuple(body.models)


def _read_max_length(body: ChatBody) -> int:
    sent = {value for value in (body.max_tokens, body.max_completion_tokens) if value is not None}
    if len(sent) > 1:
        raise ChatRequestConflict("'max_tokens' and 'max_completion_tokens' differ.")
    return sent.pop() if sent else DEFAULT_CHAT_OUTPUT_TOKENS


def _read_stop(stop: list[str] | None) -> tuple[str, ...]:
    sequences = tuple(stop or ())
    different = set(sequences)
    if len(different) > MAX_STOP_SEQUENCES:
        raise TooManyStopSequences(f"'stop' holds more than {MAX_STOP_SEQUENCES} different sequences.")
    if sum(map(len, different)) > MAX_STOP_SEQUENCE_CHARACTERS:
        raise ExcessiveStopSequence(
            f"The sequences of 'stop' hold more than {MAX_STOP_SEQUENCE_CHARACTERS} characters."
        )
    return sequences


def _read_messages(raw: object) -> tuple[Message, ...]:
    if not isinstance(raw, list) or not all(isinstance(message, dict) for message in raw):
        raise BadRequest("'messages' has to be a list of objects.")
    if not raw:
        raise BadRequest("'messages' has to hold at least one message.")
    if len(raw) > MAX_CHAT_MESSAGE_COUNT:
        raise UnsupportedChatParameter(f"messages holds more than {MAX_CHAT_MESSAGE_COUNT} messages.")
    messages = tuple(_read_message(f"messages[{index}]", message) for index, message in enumerate(raw))
    if sum(len(text.encode()) for message in messages for text in message.texts) > MAX_CHAT_TEXT_BYTES:
        raise UnsupportedChatParameter(f"messages holds more than {MAX_CHAT_TEXT_BYTES} bytes of text.")
    return messages


def _read_message(path: str, raw: Mapping[str, object]) -> Message:
    role = raw.get("role")
    if not isinstance(role, str):
        raise BadRequest(f"'{path}.role' has to be a string.")
    if role not in set(Role):
        raise UnsupportedChatParameter.value(f"{path}.role", role)
    if role == Role.TOOL:
        raise UnsupportedChatParameter.not_yet(f"{path}.role={role}")
    for key in raw:
        if key == "tool_calls" and role == Role.ASSISTANT:
            raise UnsupportedChatParameter.not_yet(f"{path}.{key}")
        if key not in ChatMessage.model_fields:
            raise UnsupportedChatParameter.key(f"{path}.{key}")
    name = raw.get("name")
    if "name" in raw and not (isinstance(name, str) and 1 <= len(name) <= MAX_MESSAGE_NAME_CHARACTERS):
        raise BadRequest(f"'{path}.name' has to be a string of 1 to {MAX_MESSAGE_NAME_CHARACTERS} characters.")
    return Message(
        role=Role.SYSTEM if role == Role.DEVELOPER else Role(role),
        content=_read_content(f"{path}.content", raw.get("content"), role=Role(role)),
        name=name if isinstance(name, str) else None,
    )


def _read_content(path: str, raw: object, *, role: Role) -> str | tuple[Part, ...]:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, list) or not raw:
        raise BadRequest(f"'{path}' has to be a string or a list of parts.")
    return tuple(_read_part(f"{path}[{index}]", part, role=role) for index, part in enumerate(raw))


def _read_part(path: str, raw: object, *, role: Role) -> Part:
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise BadRequest(f"'{path}' has to be an object with a 'type'.")
    if raw["type"] == "image_url" and role == Role.USER:
        raise UnsupportedChatParameter.not_yet(f"{path}.type=image_url")
    if raw["type"] != "text":
        raise UnsupportedChatParameter.value(f"{path}.type", raw["type"])
    for key in raw:
        if key not in TextPartBody.model_fields:
            raise UnsupportedChatParameter.key(f"{path}.{key}")
    if not isinstance(raw.get("text"), str):
        raise BadRequest(f"'{path}.text' has to be a string.")
    return TextPart(text=raw["text"])
