"""Hold every caller to the rate limits, before a view or another middleware reads the body (ORD-24)."""

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

from hordechat.http import headers
from hordechat.http.rate_limits import counting
from hordechat.http.rate_limits.rules import Call, RateLimits
from hordechat.http.refusals import RateLimitExceeded, plain_response
from hordechat.infra import clock

USAGE = "hordechat.rate_limit"
"""Where a request's usage waits for its response."""


class RateLimitMiddleware:
    """Refuse a call that is one too many, and tell every caller how its budget stands."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.HORDE.rate_limits_enabled:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.limits = RateLimits(settings.HORDE)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer with the headers of the limit that decides."""
        response = self.get_response(request)
        usage = request.META.get(USAGE)
        if isinstance(usage, counting.Usage):
            for name, value in usage.headers(clock.now()).items():
                # A refusal for another reason knows better when to come back.
                response.headers.setdefault(name, value)
        return response

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponse],  # noqa: ARG002 - the signature is Django's
        arguments: tuple[object, ...],  # noqa: ARG002
        path_values: dict[str, object],
    ) -> HttpResponse | None:
        """Take the call from its budgets once its route is known; a response in place of None ends it here."""
        if request.resolver_match is None:
            return None
        call = Call(
            route=request.resolver_match.route,
            method=request.method or "",
            path_values=tuple(map(str, path_values.values())),
            address=headers.find_address(request),
            client_address=headers.find_client_address(request),
            api_key=headers.find_api_key(request),
        )
        usage = counting.spend(request, self.limits.list_budgets(call))
        if usage is None:
            return None
        request.META[USAGE] = usage
        if not usage.is_exceeded:
            return None
        rate = usage.budget.rate
        return plain_response(RateLimitExceeded(limit=f"{rate.count} per {rate.period}", caller=usage.budget.caller))
