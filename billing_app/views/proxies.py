"""Believe a service about its client's address, before anything asks whose address counts."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from billing_app.selectors.proxy_passkeys import KnownPasskeys
from hordechat.http import headers
from hordechat.infra import clock


class ProxyPasskeyMiddleware:
    """Take the client's address from `Proxied-For` when the call carries a known proxy passkey."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.passkeys = KnownPasskeys()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Leave an accepted address where `headers.find_client_address` looks for it."""
        passkey = headers.find_proxy_passkey(request)
        if passkey is not None:
            address = headers.find_proxied_address(request)
            if address is not None and self.passkeys.is_known(passkey, now=clock.now()):
                request.META[headers.ACCEPTED_ADDRESS] = address
        return self.get_response(request)
