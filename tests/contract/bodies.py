"""A small chat body, and what the contract makes of it with changes."""

from typing import Any

import pytest

from hordechat.contract import chat
from hordechat.contract.chat import ChatSubmission
from hordechat.errors import ErrorCode, HordeError

USER: dict[str, Any] = {"role": "user", "content": "Hello"}
BODY: dict[str, Any] = {"model": "demo/echo", "messages": [USER]}
INVALID = "Input payload validation failed"
ABSENT = object()
"""Leaves a key out."""


def body(**changes: object) -> dict[str, object]:
    return {key: value for key, value in {**BODY, **changes}.items() if value is not ABSENT}


def parse(**changes: object) -> ChatSubmission:
    return chat.parse(body(**changes))


def refuse(**changes: object) -> HordeError:
    """Return the refusal of the body with these changes."""
    with pytest.raises(HordeError) as refused:
        chat.parse(body(**changes))
    return refused.value


def refuse_messages(*messages: object) -> HordeError:
    return refuse(messages=list(messages))


def said(error: HordeError) -> tuple[str, str]:
    """Return what a refusal's table rows compare."""
    return error.code.value, error.message


def unsupported(named: str) -> tuple[str, str]:
    """Return what the refusal of a key, or of a `path=value`, says (RFS-27)."""
    return ErrorCode.UNSUPPORTED_CHAT_PARAMETER.value, f"{named} is not supported on chat requests."


def bad(message: str) -> tuple[str, str]:
    return ErrorCode.BAD_REQUEST.value, message


def conflict(message: str) -> tuple[str, str]:
    return ErrorCode.CHAT_REQUEST_CONFLICT.value, message


def limited(message: str) -> tuple[str, str]:
    """Return what the refusal of a passed limit, a broken history or a broken schema says."""
    return ErrorCode.UNSUPPORTED_CHAT_PARAMETER.value, message


def tool(name: str = "look", **function: object) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **function}}


def call(call_id: str = "c", name: str = "look", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*ids: str) -> dict[str, Any]:
    """Return an assistant message that makes these calls."""
    return {"role": "assistant", "tool_calls": [call(call_id) for call_id in ids]}


def answer(call_id: str = "c", content: object = "4") -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": call_id}


def image(url: str = "data:image/png;base64,aGVsbG8=", **members: object) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **members}}


def nested(containers: int, *, innermost: object = None) -> object:
    """Return objects inside each other, as many as asked for."""
    value: object = {} if innermost is None else {"a": innermost}
    for _ in range(containers - 1):
        value = {"a": value}
    return value
