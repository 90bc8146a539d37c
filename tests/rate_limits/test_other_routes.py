"""The limits of the other routes: each route, method and, for a status, each id has a budget of its own."""

from uuid import UUID

import pytest
from time_machine import Traveller

from tests.rate_limits.callers import (
    FIND_USER,
    HEARTBEAT,
    OTHER_ADDRESS,
    POP,
    STATUS,
    SUBMIT,
    Caller,
    Limits,
    refused,
    standing,
    taken,
)

REQUEST_ID = "6f0c1c1e-0000-4000-8000-00000000abcd"

pytestmark = pytest.mark.usefixtures("clock", "limits")


def count_taken(caller: Caller, path: str, method: str, *, times: int) -> int:
    return sum(status != 429 for status in caller.call_times(times, path, method))


@pytest.mark.spec("RLM-18")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_status_is_read_and_cancelled_60_times_a_minute(method: str) -> None:
    path = f"{STATUS}no-id"

    assert Caller().call_times(62, path, method) == [404] * 60 + refused(2)
    assert Caller().call_times(1, f"{STATUS}another", method) == [404]
    assert Caller(OTHER_ADDRESS).call_times(1, path, method) == [404]
    assert Caller().call_times(1, path, "GET" if method == "DELETE" else "DELETE") == [404]


@pytest.mark.spec("RLM-18")
def test_a_status_limit_ends_with_its_window(clock: Traveller) -> None:
    caller = Caller()
    answers = [caller.call(f"{STATUS}no-id", "GET") for _ in range(61)]
    seconds = int(answers[60]["Retry-After"])

    assert 1 <= seconds <= 60
    assert standing(answers[0]) == (60, 59)
    assert answers[60].json() == {
        "message": "This address has used up its limit of 60 per minute; the Retry-After header says how long.",
        "rc": "RateLimitExceeded",
    }
    clock.shift(seconds - 1)
    assert Caller().call_times(1, f"{STATUS}no-id", "GET") == refused(1)
    clock.shift(1)
    assert Caller().call_times(61, f"{STATUS}no-id", "GET") == [404] * 60 + refused(1)


@pytest.mark.django_db
@pytest.mark.spec("RLM-18")
def test_every_spelling_of_an_id_is_the_same_path() -> None:
    spellings = [REQUEST_ID, REQUEST_ID.upper(), UUID(REQUEST_ID).hex, f"{{{REQUEST_ID}}}", f"urn:uuid:{REQUEST_ID}"]

    answers = [Caller().call(f"{STATUS}{spelling}", "GET") for spelling in spellings]
    elsewhere = Caller().call(f"/v2/generate/chat/status/{REQUEST_ID}", "GET")
    head = Caller().call(f"{STATUS}{REQUEST_ID}", "HEAD")

    assert [standing(answer) for answer in [*answers, elsewhere, head]] == [(60, 59 - n) for n in range(7)]


@pytest.mark.parametrize("path", [POP, SUBMIT])
def test_a_workers_routes_take_60_calls_a_second_each(path: str, clock: Traveller) -> None:
    other = SUBMIT if path == POP else POP

    assert Caller(api_key="one").call_times(30, path) == taken(30)
    assert Caller(api_key="two").call_times(32, path) == [*taken(30), *refused(2)]
    assert Caller().call_times(1, other) == taken(1)
    clock.shift(1)
    assert Caller().call_times(1, path) == taken(1)


@pytest.mark.parametrize(
    ("path", "method"),
    [(FIND_USER, "GET"), (POP, "GET"), ("/api/v2/generate/chat/async", "GET"), ("/", "POST")],
)
def test_every_other_route_takes_90_calls_a_minute(path: str, method: str) -> None:
    caller = Caller(api_key=None)

    assert count_taken(caller, path, method, times=92) == 90
    assert caller.call_times(1) == taken(1)


@pytest.mark.django_db
@pytest.mark.parametrize("path", [HEARTBEAT, "/v2/status/heartbeat", "/healthz/live", "/metrics"])
def test_what_monitors_ask_is_never_refused(path: str) -> None:
    caller = Caller()
    answers = [caller.call(path, "GET") for _ in range(95)]

    assert {answer.status_code for answer in answers} == {200}
    assert not any(answer.has_header("X-RateLimit-Limit") for answer in answers)


def test_whitelisting_is_for_submitting_alone(limits: Limits) -> None:
    limits.set(HORDE_RATE_LIMITS_WHITELIST=OTHER_ADDRESS)

    assert Caller(OTHER_ADDRESS).call_times(61, f"{STATUS}no-id", "GET") == [404] * 60 + refused(1)


def test_a_path_no_route_has_is_not_counted() -> None:
    answers = [Caller().call("/api/v2/nowhere", "GET") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [404] * 3
    assert not any(answer.has_header("X-RateLimit-Limit") for answer in answers)
