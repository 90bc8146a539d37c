"""Read a request's body, bounded while it is read, and parse it once.

The bound holds for a declared length and for a chunked body, which declares none: Django shows the latter as empty, so
the server's own stream is read. The server ends that stream where the body ends (`wsgi.input_terminated`).
"""

from collections.abc import Callable, Mapping
from threading import BoundedSemaphore
from typing import TypeVar

from django.http import HttpRequest
from rest_framework.request import Request

from hordechat.contract.json_body import ReplyObject, parse_object, parse_reply
from hordechat.contract.limits import MIB
from hordechat.contract.refusals import BadRequest
from hordechat.http.refusals import RequestTooLarge, ServerBusy

Parsed = TypeVar("Parsed")

READ_BYTES = 64 * 1024
MAX_LENGTH_DIGITS = 20
LARGE_BODY_BYTES = 4 * MIB
LARGE_BODIES_AT_ONCE = 2
LARGE_BODY_WAIT_SECONDS = 10.0


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


def read_object(request: HttpRequest | Request, *, limit_bytes: int) -> dict[str, object]:
    """Read and parse a body in one step.

    Raises:
        RequestTooLarge, BadRequest, NulByteInPayload: as `read_bytes` and `parse_object`.
        ServerBusy: other large bodies are parsed already and did not come to an end in time.
    """
    return _parse(read_bytes(request, limit_bytes=limit_bytes), parse_object)


def read_reply(request: HttpRequest | Request, *, limit_bytes: int) -> ReplyObject:
    """Read and parse a reply's body, which may hold what is no text.

    Raises:
        RequestTooLarge, BadRequest, ServerBusy: as `read_object`.
    """
    return _parse(read_bytes(request, limit_bytes=limit_bytes), parse_reply)


def _parse(body: bytes, parse: Callable[[bytes], Parsed]) -> Parsed:
    if len(body) <= LARGE_BODY_BYTES:
        return parse(body)
    if not _large_bodies.acquire(timeout=LARGE_BODY_WAIT_SECONDS):
        raise ServerBusy
    try:
        return parse(body)
    finally:
        _large_bodies.release()


# What a body is parsed into can be many times its size, so few large ones are parsed at a time in a process.
_large_bodies = BoundedSemaphore(LARGE_BODIES_AT_ONCE)
