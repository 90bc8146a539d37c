"""A conversation as turns: what trimming drops or keeps as a whole."""

from collections.abc import Sequence

from hordechat.contract.chat import Message
from hordechat.contract.vocabulary import Role

Turn = tuple[int, ...]
"""The places of a turn's messages in the conversation."""


def list_turns(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns, oldest first.

    A user message and the assistant message after it are one, an assistant message with tool calls and the tool
    messages answering it are one, and so are both together; anything else is one by itself (CTX-24..26, CTX-46).
    System messages, which a developer's have become, belong to none and part none (CTX-27, CTX-48).
    """
    turns: list[list[int]] = []
    previous = None
    for place, message in enumerate(messages):
        if message.role == Role.SYSTEM:
            continue
        if previous is not None and _continues_turn(message, previous=previous):
            turns[-1].append(place)
        else:
            turns.append([place])
        previous = message
    return [tuple(turn) for turn in turns]


def list_droppable_turns(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns before the latest user message, oldest first; without one, all but the last (CTX-28, CTX-47)."""
    turns = list_turns(messages)
    latest = max((place for place, message in enumerate(messages) if message.role == Role.USER), default=None)
    # A user message always begins its turn, so no turn reaches from before the latest one into what is kept.
    return turns[:-1] if latest is None else [turn for turn in turns if turn[0] < latest]


def _continues_turn(message: Message, *, previous: Message) -> bool:
    """Return whether a message belongs to the turn of the one before it.

    A tool message after calls or another tool message answers those calls: the contract refuses any other history.
    """
    if message.role == Role.ASSISTANT:
        return previous.role == Role.USER
    return message.role == Role.TOOL and (bool(previous.tool_calls) or previous.role == Role.TOOL)
