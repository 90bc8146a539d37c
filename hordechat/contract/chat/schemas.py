"""JSON Schemas a client sends: free JSON that is stored as it came, bounded before anything else walks it."""

from collections.abc import Iterable

from hordechat.contract.chat.submission import JsonObject
from hordechat.contract.chat.values import below
from hordechat.contract.limits import (
    MAX_CHAT_SCHEMA_CONTAINERS,
    MAX_CHAT_SCHEMA_NESTING,
    MAX_CHAT_TOOL_SPEC_BYTES,
    UNKEPT_INTEGER,
)
from hordechat.contract.refusals import BadRequest, UnsupportedChatParameter

Place = tuple[str | int, ...]


def check_schema(path: str, schema: JsonObject) -> None:
    """Hold a schema to its nesting, and its numbers to those that are kept digit by digit (TLS-17, TLS-33).

    Raises:
        UnsupportedChatParameter: nested too deep, or surely larger than all definitions together may be.
        BadRequest: a number of 2^64 or more; JSON integers of that size were rounded when the body was read.
    """
    # Level by level, and no further than the bytes allowed reach: a body may be all schema.
    level: list[tuple[Place, object]] = [((), schema)]
    least_bytes = 0
    for depth in range(1, MAX_CHAT_SCHEMA_CONTAINERS + 1):
        deeper: list[tuple[Place, object]] = []
        for place, container in level:
            for step, value in _entries(container):
                least_bytes += _least_bytes(step, value)
                if least_bytes >= MAX_CHAT_TOOL_SPEC_BYTES:
                    raise too_large()
                if isinstance(value, dict | list):
                    if depth == MAX_CHAT_SCHEMA_CONTAINERS:
                        raise UnsupportedChatParameter(
                            f"{path} nests more than {MAX_CHAT_SCHEMA_NESTING} levels below its root."
                        )
                    deeper.append(((*place, step), value))
                elif isinstance(value, int | float) and not -UNKEPT_INTEGER < value < UNKEPT_INTEGER:
                    raise BadRequest(f"'{_path_of(path, (*place, step))}' is a number of 2^64 or more.")
        level = deeper


def _least_bytes(step: str | int, value: object) -> int:
    """Return what an entry adds to the JSON at the least: a byte and a comma, the characters of its key and string."""
    key_characters = len(step) if isinstance(step, str) else 0
    return 2 + key_characters + (len(value) if isinstance(value, str) else 0)


def too_large() -> UnsupportedChatParameter:
    """Return the refusal of definitions that are too large together (TLS-16)."""
    return UnsupportedChatParameter(
        f"tools, tool_choice and response_format hold more than {MAX_CHAT_TOOL_SPEC_BYTES} bytes of JSON together."
    )


def _entries(container: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(container, dict):
        return container.items()
    return enumerate(container) if isinstance(container, list) else ()


def _path_of(path: str, place: Place) -> str:
    for step in place:
        path = f"{path}[{step}]" if isinstance(step, int) else below(path, step)
    return path
