"""What every response carries: a request id, the public CORS headers, the node's name; and what is measured of it."""

import logging
import time
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from hordechat.infra.logging import request_id
from hordechat.infra.metrics import HTTP_REQUESTS, HTTP_SECONDS

logger = logging.getLogger("hordechat.access")
Handler = Callable[[HttpRequest], HttpResponse]

API_PREFIXES = ("/api/", "/v2/")
PUBLIC_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS, PUT, DELETE, PATCH",
    "Access-Control-Allow-Headers": "Accept, Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, apikey, "
    "Client-Agent, X-Fields, X-Forwarded-For, Proxied-For, Proxy-Authorization",
}
VERSION = "2"


class RequestIdMiddleware:
    """Give the request an id that its response and every log line carry, and measure it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request under its own id; an id a client sends is not taken over, it may be anything."""
        identifier = uuid.uuid4().hex
        token = request_id.set(identifier)
        started_at = time.perf_counter()
        try:
            response = self.get_response(request)
            seconds = time.perf_counter() - started_at
            # The route's pattern and never the path: a path holds ids, and each would become a series of its own.
            route = request.resolver_match.route if request.resolver_match else "none"
            method = (
                request.method if request.method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} else "other"
            )
            HTTP_REQUESTS.labels(route, method, response.status_code).inc()
            HTTP_SECONDS.labels(route, method).observe(seconds)
            fields = {"method": method, "route": route, "status": response.status_code}
            logger.debug("answered", extra={**fields, "milliseconds": round(seconds * 1000, 1)})
            response["X-Request-Id"] = identifier
            return response
        finally:
            request_id.reset(token)


class PublicHeadersMiddleware:
    """Let a web page of any origin use the API, and say which node answered."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self.node = f"{settings.HORDE.node_name}:{settings.HORDE.port}:{VERSION}"

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, a preflight question at once."""
        if not request.path_info.startswith(API_PREFIXES):
            return self.get_response(request)
        response = HttpResponse(status=204) if request.method == "OPTIONS" else self.get_response(request)
        for name, value in PUBLIC_HEADERS.items():
            response[name] = value
        response["Horde-Node"] = self.node
        return response
