"""Behind a service with a known passkey each client has limits of its own; nobody else chooses whose are spent."""

import json

import pytest
from django.db import connection
from django.http import HttpRequest
from django.test.utils import CaptureQueriesContext
from time_machine import Traveller

from billing_app.models import User
from billing_app.services import accounts, proxy_passkeys
from hordechat.http import headers
from tests.billing.books import NOW
from tests.horde import Horde, chat_body
from tests.rate_limits.callers import (
    ADDRESS,
    FIND_USER,
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

CLIENT = "203.0.113.1"
OTHER_CLIENT = "203.0.113.2"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "limits")]


def make_passkey() -> str:
    service = accounts.create_user(alias="relay", is_service=True, now=NOW)
    return proxy_passkeys.create(user_id=service.id, now=NOW).proxy_passkey


def relay(passkey: str, client: str, *, address: str = ADDRESS, **sent: str) -> Caller:
    return Caller(address, headers={"Proxy-Authorization": passkey, "Proxied-For": client, **sent})


@pytest.mark.spec("RLM-07")
def test_a_services_clients_are_counted_apart() -> None:
    passkey = make_passkey()

    assert relay(passkey, CLIENT).call_times(3) == [*taken(2), *refused(1)]
    assert relay(passkey, OTHER_CLIENT).call_times(3) == [*taken(2), *refused(1)]
    assert Caller(ADDRESS).call_times(3) == [*taken(2), *refused(1)], "the service's own address has spent nothing"


@pytest.mark.spec("RLM-07", "RLM-09")
def test_a_client_spends_the_same_budget_through_a_service_and_without() -> None:
    passkey = make_passkey()

    assert relay(passkey, CLIENT).call_times(1) == taken(1)
    assert relay(passkey, CLIENT, address=OTHER_ADDRESS).call_times(1) == taken(1)
    assert Caller(CLIENT).call_times(1) == refused(1)


@pytest.mark.spec("RLM-07")
def test_a_request_that_is_taken_counts_so_too(horde: Horde) -> None:
    passkey = make_passkey()
    horde.pop()
    body = json.dumps(chat_body()).encode()

    answers = [relay(passkey, client).call(body=body) for client in (CLIENT, CLIENT, OTHER_CLIENT)]

    assert [(answer.status_code, standing(answer)) for answer in answers] == [
        (202, (2, 1)),
        (202, (2, 0)),
        (202, (2, 1)),
    ]


@pytest.mark.spec("RLM-07")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_status_is_asked_by_the_client_too(method: str) -> None:
    passkey = make_passkey()
    path = f"{STATUS}no-id"

    assert standing(relay(passkey, CLIENT).call(path, method)) == (60, 59)
    assert standing(relay(passkey, OTHER_CLIENT).call(path, method)) == (60, 59)
    assert standing(relay(passkey, CLIENT).call(path, method)) == (60, 58)
    assert standing(Caller(ADDRESS).call(path, method)) == (60, 59)


@pytest.mark.spec("RLM-08")
def test_without_a_known_passkey_nobody_is_believed() -> None:
    passkey = make_passkey()
    claims = ["anything", "", passkey[:-1], passkey + "x", passkey.swapcase(), f"Bearer {passkey}"]
    callers = [relay(claim, f"203.0.113.{number}") for number, claim in enumerate(claims)]
    callers.append(Caller(ADDRESS, headers={"Proxied-For": CLIENT}))
    callers.append(relay("anything", CLIENT, **{"X-Forwarded-For": CLIENT, "Apikey": passkey}))

    assert [caller.call().status_code for caller in callers] == [*taken(2), *refused(6)]


@pytest.mark.parametrize("change", [{"is_service": False}, {"is_flagged": True}, {"is_deleted": True}])
@pytest.mark.spec("RLM-08")
def test_a_service_that_lost_its_standing_is_not_believed(change: dict[str, bool]) -> None:
    passkey = make_passkey()
    User.objects.filter(alias="relay").update(**change)

    assert [relay(passkey, f"203.0.113.{number}").call().status_code for number in range(3)] == [*taken(2), *refused(1)]


def test_a_revoked_passkey_counts_for_five_seconds_more(clock: Traveller) -> None:
    caller = relay(make_passkey(), CLIENT)
    own = Caller(ADDRESS)
    assert standing(caller.call()) == (2, 1)
    proxy_passkeys.revoke(user_id=User.objects.get(alias="relay").id)

    clock.shift(4)
    before = [standing(who.call()) for who in (caller, own)]
    clock.shift(1)
    after = [standing(who.call()) for who in (caller, own)]

    assert before == [(2, 1), (2, 1)]
    assert after == [(2, 1), (2, 0)], "both were counted as the service's own address"


@pytest.mark.parametrize(
    "claim",
    ["", "no address", "203.0.113.1:4711", "203.0.113.0/24", f"{CLIENT}, {OTHER_CLIENT}", "203.0.113.256", "\u0661"],
)
def test_what_is_no_address_is_ignored(claim: str) -> None:
    passkey = make_passkey()

    assert relay(passkey, claim).call_times(2) == taken(2)
    assert Caller(ADDRESS).call_times(1) == refused(1)


@pytest.mark.parametrize(
    ("claim", "same"),
    [
        (f" {CLIENT} ", CLIENT),
        (f"::ffff:{CLIENT}", CLIENT),
        ("2001:db8::1", "2001:db8::ffff:2"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_an_address_counts_as_it_would_on_a_connection(claim: str, same: str) -> None:
    passkey = make_passkey()

    assert relay(passkey, claim).call_times(2) == taken(2)
    assert Caller(same).call_times(1) == refused(1)


def test_a_whitelisted_client_is_whitelisted_behind_a_service_and_the_services_address_gives_nothing(
    limits: Limits,
) -> None:
    limits.set(HORDE_RATE_LIMITS_WHITELIST=f"{CLIENT},{OTHER_ADDRESS}")
    passkey = make_passkey()

    assert standing(relay(passkey, CLIENT).call()) == (10, 9)
    assert standing(relay(passkey, OTHER_CLIENT, address=OTHER_ADDRESS).call()) == (2, 1)
    assert standing(Caller(OTHER_ADDRESS).call()) == (10, 9)


@pytest.mark.parametrize(
    ("path", "method", "limit"),
    [(POP, "POST", 60), (SUBMIT, "POST", 60), (FIND_USER, "GET", 90), (f"{STATUS}no-id", "POST", 90)],
)
def test_workers_and_all_others_are_known_by_their_connection(path: str, method: str, limit: int) -> None:
    passkey = make_passkey()

    answers = [relay(passkey, client).call(path, method) for client in (CLIENT, OTHER_CLIENT)]

    assert [standing(answer) for answer in answers] == [(limit, limit - 1), (limit, limit - 2)]


@pytest.mark.parametrize(
    "name",
    [headers.ACCEPTED_ADDRESS, headers.ACCEPTED_ADDRESS.replace(".", "-"), headers.ACCEPTED_ADDRESS.replace(".", "_")],
)
@pytest.mark.spec("RLM-08")
def test_no_header_passes_for_an_accepted_address(name: str) -> None:
    sent = [{name: f"203.0.113.{number}", "Proxy-Authorization": "anything"} for number in range(3)]

    assert [Caller(headers=claim).call().status_code for claim in sent] == [*taken(2), *refused(1)]


def test_the_database_is_asked_only_for_calls_that_name_a_client_and_carry_a_passkey() -> None:
    passkey = make_passkey()
    calls = [
        {},
        {"Proxied-For": CLIENT},
        {"Proxy-Authorization": passkey},
        {"Proxy-Authorization": passkey, "Proxied-For": CLIENT},
    ]
    counts = []

    for sent in calls:
        with CaptureQueriesContext(connection) as queries:
            Caller(headers=sent).call()
        counts.append(len(queries))

    assert counts == [0, 0, 0, 1]


def test_the_client_address_is_the_accepted_one_or_the_connections() -> None:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": ADDRESS, "HTTP_PROXIED_FOR": CLIENT, "HTTP_PROXY_AUTHORIZATION": "anything"}
    before = headers.find_client_address(request)
    request.META[headers.ACCEPTED_ADDRESS] = CLIENT

    assert (before, headers.find_client_address(request)) == (ADDRESS, CLIENT)
    assert headers.find_address(request) == ADDRESS
