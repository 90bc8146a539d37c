"""A body's bytes as a JSON object: strict, bounded before it is parsed, and without what the database cannot hold."""

import re
from dataclasses import dataclass

import orjson

from hordechat.contract.limits import MAX_JSON_SEPARATORS
from hordechat.contract.refusals import BadRequest, NulByteInPayload
from hordechat.contract.text import REPLACEMENT, holds_nul

# Only an escape can spell half of a surrogate pair: raw bytes of one are no UTF-8.
_HALF_PAIR = re.compile(
    rb"""(?x)
      \\u (?i: d[89ab][0-9a-f]{2} ) (?! \\u (?i: d[c-f][0-9a-f]{2} ) )
    | (?<! \\u (?i: d[89ab][0-9a-f]{2} ) ) \\u (?i: d[c-f][0-9a-f]{2} )
    """
)


@dataclass(frozen=True, kw_only=True)
class ReplyObject:
    """The JSON object of a reply: a model may write what is no text."""

    values: dict[str, object]
    """NUL characters are left in, halves of surrogate pairs are replaced."""
    holds_half_pairs: bool
    """Whether any were."""


def parse_reply(body: bytes) -> ReplyObject:
    """Return the JSON object of a worker's body, so that what nobody can store is refused as the reply it is (RSN-16).

    Raises:
        BadRequest: as `parse_object`.
    """
    try:
        return ReplyObject(values=parse_object(body, refuse_nul=False), holds_half_pairs=False)
    except BadRequest:
        repaired, halves = _replace_half_pairs(body)
        if not halves:
            raise
    return ReplyObject(values=parse_object(repaired, refuse_nul=False), holds_half_pairs=True)


def _replace_half_pairs(body: bytes) -> tuple[bytes, int]:
    """Return the same JSON with halves of surrogate pairs replaced, and how many they were.

    The body is not parsed for it: another parser would take what this one has its bounds against.
    """
    # Once escaped backslashes are spelled otherwise, every backslash begins an escape.
    return _HALF_PAIR.subn(REPLACEMENT.encode(), body.replace(rb"\\", rb"\u005c"))


def parse_object(body: bytes, *, refuse_nul: bool = True) -> dict[str, object]:
    """Return the JSON object a body holds, whatever its content type says (BDY-17).

    Raises:
        BadRequest: no strict JSON, no object, nested too deep, or more values than a body may hold.
        NulByteInPayload: a string holds a NUL character, unless the route replaces them.
    """
    if body.count(b"[") + body.count(b"{") + body.count(b",") > MAX_JSON_SEPARATORS:
        raise BadRequest(f"The request body holds more than {MAX_JSON_SEPARATORS} values.")
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"The request body is not JSON: {error.msg}.") from None
    if not isinstance(parsed, dict):
        raise BadRequest("The request body has to be a JSON object.")
    # The escape is the only spelling strict JSON has for it, so most bodies need no walk.
    if refuse_nul and b"\\u0000" in body and holds_nul(parsed):
        raise NulByteInPayload
    return parsed
