"""Read a request's body, bounded while it is read, and parse it once.

The bound holds for a declared length and for a chunked body, which declares none: Django shows the latter as empty, so
the server's own stream is read. The server ends that stream where the body ends (`wsgi.input_terminated`).
"""

from collections.abc import Mapping

import orjson
from django.http import HttpRequest
from rest_framework.request import Request

from hordechat.contract.limits import MAX_JSON_SEPARATORS
from hordechat.contract.refusals import BadRequest, NulByteInPayload
from hordechat.contract.text import holds_nul
from hordechat.http.refusals import RequestTooLarge

READ_BYTES = 64 * 1024
MAX_LENGTH_DIGITS = 20


def read_bytes(request: HttpRequest | Request, *, limit_bytes: int) -> bytes:
    """Return the body.

    Raises:
        RequestTooLarge: the body is declared, or turns out, longer than the limit; the rest is not read.
        BadRequest: the length is no number, or the client stopped early.
    """
    environ: Mapping[str, object] = request.META
    if "chunked" in str(environ.get("HTTP_TRANSFER_ENCODING", "")).lower():
        return _read(environ, wanted_bytes=limit_bytes + 1, limit_bytes=limit_bytes)
    declared = str(environ.get("CONTENT_LENGTH") or "0")
    if not (declared.isascii() and declared.isdecimal()):
        raise BadRequest("The Content-Length header has to be a number.")
    # Python refuses to read a number of thousands of digits.
    if len(declared) > MAX_LENGTH_DIGITS or int(declared) > limit_bytes:
        raise RequestTooLarge(limit_bytes=limit_bytes)
    body = _read(environ, wanted_bytes=int(declared), limit_bytes=limit_bytes)
    if len(body) < int(declared):
        raise BadRequest("The request body ended before its declared length.")
    return body


def _read(environ: Mapping[str, object], *, wanted_bytes: int, limit_bytes: int) -> bytes:
    stream = environ["wsgi.input"]
    pieces: list[bytes] = []
    missing_bytes = wanted_bytes
    while missing_bytes:
        try:
            piece: bytes = stream.read(min(READ_BYTES, missing_bytes))  # type: ignore[attr-defined]
        except OSError as error:
            raise BadRequest("The request body could not be read to its end.") from error
        if not piece:
            break
        pieces.append(piece)
        missing_bytes -= len(piece)
    body = b"".join(pieces)
    if len(body) > limit_bytes:
        raise RequestTooLarge(limit_bytes=limit_bytes)
    return body


def parse_object(body: bytes) -> dict[str, object]:
    """Return the JSON object a body holds, whatever its content type says (BDY-17).

    Raises:
        BadRequest: no strict JSON, no object, nested too deep, or more values than a body may hold.
    """
    if body.count(b"[") + body.count(b"{") + body.count(b",") > MAX_JSON_SEPARATORS:
        raise BadRequest(f"The request body holds more than {MAX_JSON_SEPARATORS} values.")
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"The request body is not JSON: {error.msg}.") from None
    if not isinstance(parsed, dict):
        raise BadRequest("The request body has to be a JSON object.")
    return parsed


def read_object(request: HttpRequest | Request, *, limit_bytes: int, refuse_nul: bool = True) -> dict[str, object]:
    """Read and parse a body in one step.

    Raises:
        RequestTooLarge, BadRequest: as `read_bytes` and `parse_object`.
        NulByteInPayload: a string holds a NUL character, unless the route replaces them.
    """
    body = read_bytes(request, limit_bytes=limit_bytes)
    parsed = parse_object(body)
    # The escape is the only spelling strict JSON has for it, so most bodies need no walk.
    if refuse_nul and b"\\u0000" in body and holds_nul(parsed):
        raise NulByteInPayload
    return parsed
