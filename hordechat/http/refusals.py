"""The one place where an error becomes a response, for REST views, plain views and Django's own pages alike."""

import logging
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from traceback import extract_tb
from typing import Any, ClassVar

from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import APIException, MethodNotAllowed
from rest_framework.response import Response

from hordechat.contract.limits import MAX_REFUSED_VALUE_CHARACTERS
from hordechat.errors import ErrorCode, HordeError
from hordechat.http.error_status import STATUS_BY_CODE
from hordechat.http.rendering import to_json
from hordechat.infra.metrics import REFUSALS

logger = logging.getLogger(__name__)
SAFE_METHODS = ("GET", "HEAD")


class RequestTooLarge(HordeError):
    """The body passes the route's bound."""

    code: ClassVar = ErrorCode.REQUEST_TOO_LARGE

    def __init__(self, *, limit_bytes: int) -> None:
        super().__init__(f"The request body is larger than the limit of {limit_bytes} bytes.")


class RouteNotFound(HordeError):
    """No route has this path."""

    code: ClassVar = ErrorCode.ROUTE_NOT_FOUND

    def __init__(self) -> None:
        super().__init__("There is no such route; /api/schema/ lists the routes.")


class RefusedMethod(HordeError):
    """The route exists and does not take this method."""

    code: ClassVar = ErrorCode.METHOD_NOT_ALLOWED

    def __init__(self, *, method: str) -> None:
        super().__init__(f"The method {method[:MAX_REFUSED_VALUE_CHARACTERS]} is not allowed on this route.")


class RateLimitExceeded(HordeError):
    """A caller sent more requests to a route than it may; nothing was read and nothing done."""

    code: ClassVar = ErrorCode.RATE_LIMIT_EXCEEDED

    def __init__(self, *, limit: str, caller: str) -> None:
        super().__init__(f"This {caller} has used up its limit of {limit}; the Retry-After header says how long.")


class MalformedRequest(HordeError):
    """The request is broken below the body: its host, its headers, its encoding."""

    code: ClassVar = ErrorCode.BAD_REQUEST


class ServiceUnavailable(HordeError):
    """The database cannot be reached; no promise that nothing was done, a commit may have broken off after its end."""

    code: ClassVar = ErrorCode.SERVICE_UNAVAILABLE

    def __init__(self) -> None:
        super().__init__("The server cannot reach its database now; try again in a moment.")


class ServerBusy(HordeError):
    """The process has its hands full of large bodies; nothing was done."""

    code: ClassVar = ErrorCode.SERVICE_UNAVAILABLE

    def __init__(self) -> None:
        super().__init__("The server is busy with other large requests. Nothing was done; try again in a moment.")


class UnexpectedError(HordeError):
    """Something the code did not foresee; the log has it under the request id."""

    code: ClassVar = ErrorCode.INTERNAL_SERVER_ERROR

    def __init__(self) -> None:
        super().__init__("Internal Server Error")


def as_refusal(error: BaseException) -> HordeError:
    """Return the refusal an exception stands for; what is unforeseen is logged with its traceback."""
    match error:
        case HordeError():
            return error
        case Http404():
            return RouteNotFound()
        case MethodNotAllowed():
            return RefusedMethod(method=str(error.detail).split('"')[1] if '"' in str(error.detail) else "")
        case DisallowedHost():
            return MalformedRequest(
                "The Host header names a host this server does not answer to (HORDE_ALLOWED_HOSTS)."
            )
        case APIException() | SuspiciousOperation() | BadRequest() | MultiPartParserError():
            return MalformedRequest("The request cannot be read.")
        # Of a connection that broke, the first use is an operational error and each later one an interface error. A
        # pool that has none to give in time raises an operational error too.
        case OperationalError() | InterfaceError():
            logger.error("the database cannot be used", exc_info=error)
            return ServiceUnavailable()
        case DatabaseError():
            logger.error("the database refused a statement: %s", _without_values(error))
            return UnexpectedError()
        case _:
            logger.error("unforeseen error", exc_info=error)
            return UnexpectedError()


def _without_values(error: DatabaseError) -> str:
    """Say what the database refused and where, without its message: that quotes the row, and so a client's texts."""
    cause = error.__cause__
    sqlstate = getattr(cause, "sqlstate", None)
    constraint = getattr(getattr(cause, "diag", None), "constraint_name", None)
    frames = [f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in extract_tb(error.__traceback__)[-8:]]
    return f"{type(error).__name__}, sqlstate {sqlstate}, constraint {constraint}, in {' > '.join(frames)}"


def body_of(refusal: HordeError) -> dict[str, object]:
    """Return the JSON members of a refusal."""
    return {"message": refusal.message, "rc": refusal.code.value, **refusal.extra}


def status_of(refusal: HordeError) -> HTTPStatus:
    """Return the status of a refusal, and count it."""
    REFUSALS.labels(refusal.code.value).inc()
    return STATUS_BY_CODE[refusal.code]


def handle(error: Exception, context: dict[str, Any]) -> Response:  # noqa: ARG001 - the signature is REST framework's
    """Answer an exception raised in a REST view."""
    refusal = as_refusal(error)
    response = Response(body_of(refusal), status=status_of(refusal))
    if refusal.code is ErrorCode.SERVICE_UNAVAILABLE:
        response["Retry-After"] = "2"
    return response


def plain_response(refusal: HordeError) -> HttpResponse:
    """Answer a refusal outside of REST views."""
    return HttpResponse(
        to_json(body_of(refusal)), status=status_of(refusal), content_type="application/json; charset=utf-8"
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """Answer a path no route has."""
    return plain_response(RouteNotFound())


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """Answer a request Django itself refuses."""
    return plain_response(as_refusal(exception))


def server_error(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Answer an error outside of REST views; Django logged it."""
    return plain_response(UnexpectedError())


def require_safe(view: Callable[..., HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Let a view outside of REST answer GET and HEAD alone."""

    # It reads and changes nothing; the check for forged requests would only answer first, and with a page.
    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponseBase:
        if request.method in SAFE_METHODS:
            return view(request)
        response = plain_response(RefusedMethod(method=str(request.method)))
        response["Allow"] = ", ".join(SAFE_METHODS)
        return response

    return guarded
