"""Whose address counts: the connection's, or the one the operator's own proxies saw."""

import pytest
from django.http import HttpRequest
from pytest_django.fixtures import Settings

from hordechat.http import headers

PEER = "192.0.2.9"


def address(forwarded: str | None, *, peer: str = PEER) -> str | None:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": peer} | ({} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded})
    return headers.find_address(request)


def trust(settings: Settings, hops: int) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"trusted_proxy_hops": hops})


@pytest.mark.spec("RLM-08")
@pytest.mark.parametrize("forwarded", [None, "", "198.51.100.1", "198.51.100.1, 198.51.100.2"])
def test_without_proxies_of_our_own_the_header_is_ignored(forwarded: str | None) -> None:
    assert address(forwarded) == PEER
    assert address(forwarded, peer="") is None


@pytest.mark.parametrize(
    ("hops", "forwarded", "expected"),
    [
        (1, "198.51.100.1", "198.51.100.1"),
        (1, "a claim, 198.51.100.1", "198.51.100.1"),
        (1, "198.51.100.2,198.51.100.1", "198.51.100.1"),
        (2, "198.51.100.3, 198.51.100.2, 198.51.100.1", "198.51.100.2"),
        (2, "198.51.100.1", PEER),
        (1, None, PEER),
        (1, "", PEER),
        (1, "198.51.100.1,", PEER),
        (1, "no address", PEER),
        (1, "198.51.100.1:4711", PEER),
        (1, "2001:db8::1", "2001:db8::1"),
        (1, "fe80::1%eth0", "fe80::1"),
    ],
)
def test_each_proxy_of_our_own_is_believed_for_one_step(
    settings: Settings, hops: int, forwarded: str | None, expected: str
) -> None:
    trust(settings, hops)

    assert address(forwarded) == expected


def test_behind_a_unix_socket_the_proxy_names_the_address(settings: Settings) -> None:
    trust(settings, 1)

    assert address("198.51.100.1", peer="") == "198.51.100.1"
    assert address(None, peer="") is None
