"""What the API reads from a request besides its body: the API key, the client's name, the connection's address."""

from ipaddress import ip_address

from django.http import HttpRequest
from rest_framework.request import Request

from hordechat.contract.limits import DEFAULT_CLIENT_AGENT, MAX_CLIENT_AGENT_CHARACTERS
from hordechat.contract.refusals import InvalidPayload
from hordechat.contract.text import without_nul


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
    """Return the address the connection comes from, None behind a unix socket."""
    # The zone of a link-local address (`fe80::1%eth0`) means something on this machine alone, and is no `inet`.
    address: str = request.META.get("REMOTE_ADDR", "").partition("%")[0]
    try:
        return str(ip_address(address))
    except ValueError:
        return None
