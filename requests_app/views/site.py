"""The site about itself and its users: who a key belongs to, whether a node lives, what it counted."""

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from billing_app.errors import InvalidApiKey, UserNotFound
from hordechat.contract.status import Heartbeat, UserDetails
from hordechat.errors import ErrorCode
from hordechat.http import headers
from hordechat.http.documents import documented
from hordechat.http.middleware import VERSION
from hordechat.http.refusals import require_safe
from hordechat.http.rendering import to_json
from hordechat.infra import clock, metrics
from requests_app.selectors import readiness, users

JSON = "application/json; charset=utf-8"


class FindUserViewSet(ViewSet):
    """`find_user`."""

    @documented(
        tag="users",
        answers=UserDetails,
        needs_key=True,
        refusals=(ErrorCode.INVALID_API_KEY, ErrorCode.USER_NOT_FOUND),
    )
    def retrieve(self, request: Request) -> Response:
        """Read who an API key belongs to."""
        api_key = headers.find_api_key(request)
        if api_key is None:
            raise InvalidApiKey
        user = users.find_self(api_key=api_key, now=clock.now())
        if user is None:
            raise UserNotFound
        return Response(user.model_dump())


class HeartbeatViewSet(ViewSet):
    """`status/heartbeat`: this node's health alone, or a trouble of the fleet would take out every node."""

    @documented(tag="site", answers=Heartbeat, is_self_contained=True)
    def retrieve(self, request: Request) -> Response:  # noqa: ARG002
        """Read whether this node answers."""
        return Response(Heartbeat(message="OK", version=VERSION).model_dump())


@require_safe
def live(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Say that this process answers, and which start of it this is."""
    return HttpResponse(to_json({"status": "ok", "instance": settings.HORDE.instance_id}), content_type=JSON)


@require_safe
def ready(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Say whether this process can do its work, and how the beat tasks do."""
    found = readiness.get(now=clock.now())
    status = HTTPStatus.OK if found.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    return HttpResponse(to_json(found.as_json()), status=status, content_type=JSON)


@require_safe
def show_metrics(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Show this machine's instruments to Prometheus, and beat's tasks as they stand, wherever they run."""
    readiness.get(now=clock.now())
    return HttpResponse(metrics.exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")
