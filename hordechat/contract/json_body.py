"""A body's bytes as a JSON object: strict, bounded before it is parsed, and without what the database cannot hold."""

import orjson

from hordechat.contract.limits import MAX_JSON_SEPARATORS
from hordechat.contract.refusals import BadRequest, NulByteInPayload
from hordechat.contract.text import holds_nul


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
