"""Single values of a chat body, each read as its type or refused with its path."""

import re
from collections.abc import Container
from typing import cast

from hordechat.contract.chat.submission import JsonObject
from hordechat.contract.limits import FUNCTION_NAME_PATTERN, MAX_REFUSED_KEY_CHARACTERS
from hordechat.contract.refusals import BadRequest, UnsupportedChatParameter

_FUNCTION_NAME = re.compile(FUNCTION_NAME_PATTERN)


def below(path: str, key: str) -> str:
    """Return the path of an object's key, which a client may have made as long as a body."""
    shown = key[:MAX_REFUSED_KEY_CHARACTERS]
    return f"{path}.{shown}" if path else shown


def refuse_unknown_keys(path: str, value: JsonObject, *, known: Container[str]) -> None:
    """Refuse the first key an object may not have, whatever it holds (RFS-33)."""
    for key in value:
        if key not in known:
            raise UnsupportedChatParameter.key(below(path, key))


def read_object(path: str, value: object) -> JsonObject:
    """Return a value that has to be an object."""
    if not isinstance(value, dict):
        raise BadRequest(f"'{path}' has to be an object.")
    return cast("JsonObject", value)


def read_string(path: str, value: object, *, characters: range | None = None) -> str:
    """Return a value that has to be a string, of a length in the range."""
    if characters is None:
        if not isinstance(value, str):
            raise BadRequest(f"'{path}' has to be a string.")
    elif not isinstance(value, str) or len(value) not in characters:
        raise BadRequest(f"'{path}' has to be a string of {characters[0]} to {characters[-1]} characters.")
    return value


def read_literal(path: str, value: object, *, known: Container[str]) -> str:
    """Return a string of a closed vocabulary; another string is outside the contract, another type broken (TLS-35)."""
    literal = read_string(path, value)
    if literal not in known:
        raise UnsupportedChatParameter.value(path, literal)
    return literal


def read_function_name(path: str, value: object) -> str:
    """Return the name of a function or a schema (TLS-03, TLS-45)."""
    if not isinstance(value, str) or not _FUNCTION_NAME.fullmatch(value):
        raise BadRequest(f"'{path}' has to be a string of 1 to 64 letters, digits, underscores and hyphens.")
    return value


def read_flag(path: str, value: object) -> bool:
    """Return a boolean; null means false (TLS-45)."""
    if value is not None and not isinstance(value, bool):
        raise BadRequest(f"'{path}' has to be a boolean.")
    return bool(value)
