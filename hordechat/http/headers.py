"""What the API reads from a request besides its body: the API key, the client's name, whose address counts."""

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

from hordechat.contract.limits import DEFAULT_CLIENT_AGENT, MAX_CLIENT_AGENT_CHARACTERS
from hordechat.contract.refusals import InvalidPayload
from hordechat.contract.text import without_nul

ACCEPTED_ADDRESS = "hordechat.accepted_address"
"""Where a request keeps the client address of a service that was believed; a header's name begins with `HTTP_`."""


def find_api_key(request: HttpRequest | Request) -> str | None:
    """Return the `apikey` header, None when it is missing or empty."""
    return request.META.get("HTTP_APIKEY") or None


def get_api_key(request: HttpRequest | Request) -> str:
    """Return the `apikey` header.

    Raises:
        InvalidPayload: the header is missing; reported like a missing field, under the name `apikey`.
    """
    key = find_api_key(request)
    if key is None:
        raise InvalidPayload({"apikey": "The header is required; 0000000000 is the anonymous key."})
    return key


def get_client_agent(request: HttpRequest | Request) -> str:
    """Return the `Client-Agent` header, cut to what is stored."""
    agent: str = request.META.get("HTTP_CLIENT_AGENT") or DEFAULT_CLIENT_AGENT
    return without_nul(agent[:MAX_CLIENT_AGENT_CHARACTERS])


def find_address(request: HttpRequest | Request) -> str | None:
    """Return the address the connection comes from, None behind a unix socket: a worker's, and a caller's as such.

    Behind proxies of the operator's own (`HORDE_TRUSTED_PROXY_HOPS`) it is the address the outermost of them saw: what
    stands further left in `X-Forwarded-For` is the client's own claim.
    """
    connection = _parse_address(request.META.get("REMOTE_ADDR", ""))
    hops: int = settings.HORDE.trusted_proxy_hops
    if not hops:
        return connection
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    # With fewer entries than proxies somebody came past one of them.
    return (_parse_address(forwarded[-hops].strip()) if len(forwarded) >= hops else None) or connection


def find_client_address(request: HttpRequest | Request) -> str | None:
    """Return the address a request is asked from: behind a service with a known passkey the one it names."""
    accepted: str | None = request.META.get(ACCEPTED_ADDRESS)
    return accepted or find_address(request)


def find_proxy_passkey(request: HttpRequest | Request) -> str | None:
    """Return the `Proxy-Authorization` header, None when it is missing or empty."""
    return request.META.get("HTTP_PROXY_AUTHORIZATION") or None


def find_proxied_address(request: HttpRequest | Request) -> str | None:
    """Return the address `Proxied-For` names, to be believed of known services alone; None when it is no address."""
    return _parse_address(request.META.get("HTTP_PROXIED_FOR", "").strip())


def _parse_address(text: str) -> str | None:
    # The zone of a link-local address (`fe80::1%eth0`) means something on this machine alone, and is no `inet`.
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return None
