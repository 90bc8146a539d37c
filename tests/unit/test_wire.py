"""What is read from a request besides its body, and how answers become JSON."""

import io
from collections.abc import Mapping
from decimal import Decimal
from math import inf, nan

import pytest
from django.http import HttpRequest

from hordechat.contract.refusals import BadRequest
from hordechat.errors import HordeError
from hordechat.http import body, headers
from hordechat.http.refusals import RequestTooLarge
from hordechat.http.rendering import to_json


class BrokenStream(io.RawIOBase):
    """A connection that is gone."""

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: object) -> int:
        raise ConnectionResetError


class CountingStream(io.BytesIO):
    """Count what is taken."""

    taken_bytes = 0

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        self.taken_bytes += len(piece)
        return piece


def request_with(meta: Mapping[str, object]) -> HttpRequest:
    request = HttpRequest()
    request.META = dict(meta)
    return request


@pytest.mark.parametrize(
    ("sent", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("", None),
        ("unix:", None),
        ("192.0.2.1:80", None),
    ],
)
def test_an_address_is_one_the_database_takes(sent: str, address: str | None) -> None:
    assert headers.find_address(request_with({"REMOTE_ADDR": sent})) == address


def test_a_socket_has_no_address() -> None:
    assert headers.find_address(request_with({})) is None


@pytest.mark.parametrize(
    ("sent", "agent"),
    [
        (None, "unknown:0:unknown"),
        ("", "unknown:0:unknown"),
        ("a:1:b", "a:1:b"),
        ("x" * 300, "x" * 255),
        ("\0", "\ufffd"),
    ],
)
def test_a_client_agent_is_cut_to_what_is_stored(sent: str | None, agent: str) -> None:
    meta = {} if sent is None else {"HTTP_CLIENT_AGENT": sent}

    assert headers.get_client_agent(request_with(meta)) == agent


@pytest.mark.spec("BDY-05")
def test_a_chunked_body_is_read_to_one_byte_past_the_bound() -> None:
    stream = CountingStream(b"x" * 1000)
    request = request_with({"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": stream})

    with pytest.raises(RequestTooLarge):
        body.read_bytes(request, limit_bytes=100)

    assert stream.taken_bytes == 101


@pytest.mark.spec("BDY-02")
def test_a_body_declared_too_long_is_not_read_at_all() -> None:
    stream = CountingStream(b"x" * 1000)
    request = request_with({"CONTENT_LENGTH": "101", "wsgi.input": stream})

    with pytest.raises(RequestTooLarge):
        body.read_bytes(request, limit_bytes=100)

    assert stream.taken_bytes == 0


def test_a_body_is_read_to_its_declared_length_and_not_beyond() -> None:
    stream = CountingStream(b"x" * 1000)

    assert len(body.read_bytes(request_with({"CONTENT_LENGTH": "100", "wsgi.input": stream}), limit_bytes=100)) == 100
    assert stream.taken_bytes == 100


@pytest.mark.parametrize(
    "meta",
    [
        {"CONTENT_LENGTH": "5", "wsgi.input": BrokenStream()},
        {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": BrokenStream()},
        {"CONTENT_LENGTH": "5", "wsgi.input": io.BytesIO(b"1234")},
        {"CONTENT_LENGTH": "five", "wsgi.input": io.BytesIO()},
        {"CONTENT_LENGTH": "-1", "wsgi.input": io.BytesIO()},
        {"CONTENT_LENGTH": "+1", "wsgi.input": io.BytesIO()},
        {"CONTENT_LENGTH": "\u00b2", "wsgi.input": io.BytesIO()},
        {"CONTENT_LENGTH": "9" * 5000, "wsgi.input": io.BytesIO()},
    ],
)
def test_a_body_that_cannot_be_read_is_the_clients_fault(meta: dict[str, object]) -> None:
    with pytest.raises(HordeError) as refused:
        body.read_bytes(request_with(meta), limit_bytes=100)

    assert isinstance(refused.value, BadRequest | RequestTooLarge)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": nan, "b": inf, "c": [-inf]}, b'{"a":null,"b":null,"c":[null]}'),
        ({"kudos": Decimal("10.50")}, b'{"kudos":10.5}'),
        ({"kudos": Decimal("NaN")}, b'{"kudos":null}'),
        ("\u00e9\U0001f600", '"\u00e9\U0001f600"'.encode()),
        ([2**63, -(2**63), 0.1], b"[9223372036854775808,-9223372036854775808,0.1]"),
    ],
)
def test_an_answer_is_always_strict_json(value: object, text: bytes) -> None:
    assert to_json(value) == text


def test_a_value_without_a_json_form_is_a_fault_of_our_own() -> None:
    with pytest.raises(TypeError, match="set"):
        to_json({"a": {1}})
