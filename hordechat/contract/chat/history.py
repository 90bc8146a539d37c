"""The order of a conversation with tools: each call is answered at once, and once."""

from collections import Counter

from hordechat.contract.chat.submission import Message
from hordechat.contract.refusals import UnsupportedChatParameter
from hordechat.contract.vocabulary import Role

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
NO_OPEN_CALL = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
)


def check_history(messages: tuple[Message, ...]) -> None:
    """Hold the tool calls of a conversation to OpenAI's rule; the first break in message order is named (HIS).

    Raises:
        UnsupportedChatParameter: a call without its answer, or an answer without its call.
    """
    issued: frozenset[str] = frozenset()
    # A dict for its order: the ids of the last assistant message that no tool message has answered yet.
    open_ids: dict[str, None] = {}
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        if message.role is not Role.TOOL:
            if open_ids:
                raise _broken(f"{path}.role", _unanswered(open_ids))
            ids = [call.id for call in message.tool_calls]
            issued = frozenset(ids)
            if len(issued) < len(ids):
                raise _broken(f"{path}.tool_calls", f"Duplicate tool call id '{_first_repeated(ids)}'.")
            open_ids = dict.fromkeys(ids)
            continue
        answered = message.tool_call_id or ""
        if not open_ids or (answered in issued and answered not in open_ids):
            raise _broken(f"{path}.role", NO_OPEN_CALL)
        if answered not in open_ids:
            raise _broken(
                f"{path}.tool_call_id",
                f"Invalid parameter: 'tool_call_id' of '{answered}' not found in 'tool_calls' of previous message.",
            )
        del open_ids[answered]
    if open_ids:
        raise _broken("messages", _unanswered(open_ids))


def _unanswered(open_ids: dict[str, None]) -> str:
    return UNANSWERED + ", ".join(open_ids)


def _first_repeated(ids: list[str]) -> str:
    return next(call_id for call_id, times in Counter(ids).items() if times > 1)


def _broken(path: str, sentence: str) -> UnsupportedChatParameter:
    return UnsupportedChatParameter(f"{path}: {sentence}")
