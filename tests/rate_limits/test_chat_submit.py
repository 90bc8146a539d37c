"""How often chat requests may be submitted: by address and by key, in the short and in the long run."""

import json

import pytest
from time_machine import Traveller

from hordechat.http.rate_limits.rules import Call, RateLimits
from hordechat.settings.env import Environment
from tests.horde import Horde, chat_body
from tests.rate_limits.callers import (
    ADDRESS,
    CHAT,
    CHAT_ELSEWHERE,
    OTHER_ADDRESS,
    Caller,
    Limits,
    refused,
    standing,
    taken,
)

SHORT = "HORDE_CHAT_REQUEST_2SEC_LIMIT_PER_IP"
LONG = "HORDE_CHAT_REQUEST_90MIN_LIMIT_PER_IP"
WHITELIST = "HORDE_RATE_LIMITS_WHITELIST"
FREE = "100000/second"

pytestmark = pytest.mark.usefixtures("clock", "limits")


@pytest.mark.spec("RLM-04", "RLM-14", "RLM-17")
def test_an_address_submits_twice_a_second(clock: Traveller) -> None:
    caller = Caller()

    answers = [caller.call() for _ in range(3)]
    clock.shift(1)

    assert [answer.status_code for answer in answers] == [*taken(2), *refused(1)]
    assert answers[2]["Content-Type"] == "application/json; charset=utf-8"
    assert json.loads(answers[2].content) == {
        "message": "This address has used up its limit of 2 per second; the Retry-After header says how long.",
        "rc": "RateLimitExceeded",
    }
    assert caller.call_times(3) == [*taken(2), *refused(1)]


@pytest.mark.spec("RLM-05")
def test_an_address_submits_90_times_a_minute(limits: Limits, clock: Traveller) -> None:
    limits.set(**{SHORT: FREE})
    statuses: list[int] = []

    for _ in range(4):
        statuses += Caller().call_times(25)
        clock.shift(1)

    assert statuses == [*taken(90), *refused(10)]


@pytest.mark.spec("RLM-01", "RLM-03")
def test_the_short_setting_bounds_an_address(limits: Limits, clock: Traveller) -> None:
    limits.set(**{SHORT: "5/second"})

    assert Caller().call_times(7) == [*taken(5), *refused(2)]
    assert Caller(OTHER_ADDRESS).call_times(7) == [*taken(5), *refused(2)]
    clock.shift(1)
    assert Caller().call_times(6) == [*taken(5), *refused(1)]


@pytest.mark.spec("RLM-02", "RLM-03")
def test_the_long_setting_bounds_an_address_over_its_window(limits: Limits, clock: Traveller) -> None:
    limits.set(**{SHORT: FREE, LONG: "7/hour"})

    answers = [Caller().call() for _ in range(8)]
    seconds = int(answers[7]["Retry-After"])

    assert [answer.status_code for answer in answers] == [*taken(7), *refused(1)]
    assert answers[7].json()["message"].startswith("This address has used up its limit of 7 per hour;")
    clock.shift(seconds - 1)
    assert Caller().call_times(1) == refused(1)
    clock.shift(1)
    assert Caller().call_times(8) == [*taken(7), *refused(1)]


@pytest.mark.spec("RLM-06")
def test_either_limit_exceeded_refuses(limits: Limits, clock: Traveller) -> None:
    limits.set(**{SHORT: "2/second", LONG: "4/hour"})
    caller = Caller()

    first = caller.call_times(3)
    clock.shift(1)
    second = caller.call_times(2)

    assert first == [*taken(2), *refused(1)]
    assert second == [*taken(1), *refused(1)], "the refused call counted too, so this is the fifth of the hour"


def test_one_setting_may_hold_several_limits(limits: Limits, clock: Traveller) -> None:
    limits.set(**{SHORT: "3/second;5/hour", LONG: "90/minute"})
    caller = Caller()

    first = caller.call_times(3)
    clock.shift(1)

    assert first == taken(3)
    assert caller.call_times(3) == [*taken(2), *refused(1)]


@pytest.mark.spec("RLM-09")
def test_clients_behind_one_address_share_both_budgets(limits: Limits, clock: Traveller) -> None:
    limits.set(**{SHORT: "2/second", LONG: "3/hour"})
    clients = [Caller(api_key=f"key-{number}") for number in range(3)]

    assert [client.call().status_code for client in clients] == [*taken(2), *refused(1)]
    clock.shift(1)
    assert Caller(api_key="key-3").call_times(1) == refused(1)


def test_an_ipv6_customer_is_counted_by_network(limits: Limits) -> None:
    limits.set(**{SHORT: "1/second"})

    assert Caller("2001:db8::1").call_times(1) == taken(1)
    assert Caller("2001:db8::ffff:2").call_times(1) == refused(1)
    assert Caller("2001:db8:0:1::1").call_times(1) == taken(1)


def test_ipv4_callers_of_a_server_that_listens_on_both_are_kept_apart(limits: Limits) -> None:
    limits.set(**{SHORT: "1/second", WHITELIST: "203.0.113.0/24"})

    assert Caller(f"::ffff:{ADDRESS}").call_times(1) == taken(1)
    assert Caller(f"::ffff:{OTHER_ADDRESS}").call_times(1) == taken(1)
    assert Caller(ADDRESS).call_times(1) == refused(1)
    assert Caller("::ffff:203.0.113.9").call_times(3) == taken(3)


def test_callers_without_an_address_share_one_budget() -> None:
    assert Caller("").call_times(2) == taken(2)
    assert Caller("unix:").call_times(1) == refused(1)
    assert Caller().call_times(1) == taken(1)


@pytest.mark.django_db
@pytest.mark.spec("RLM-08")
def test_an_address_a_client_claims_is_not_believed() -> None:
    claims = [
        {"X-Forwarded-For": "198.51.100.1"},
        {"Proxied-For": "198.51.100.2", "Proxy-Authorization": "anything"},
        {"Forwarded": "for=198.51.100.3", "X-Real-IP": "198.51.100.3"},
    ]

    assert [Caller(headers=claim).call().status_code for claim in claims] == [*taken(2), *refused(1)]


def test_behind_a_proxy_of_the_operator_its_word_counts(limits: Limits) -> None:
    limits.set(HORDE_TRUSTED_PROXY_HOPS="1")
    forwarded = [Caller(headers={"X-Forwarded-For": f"10.0.0.{number}, 198.51.100.1"}) for number in range(3)]

    assert [caller.call().status_code for caller in forwarded] == [*taken(2), *refused(1)]
    assert Caller(headers={"X-Forwarded-For": "198.51.100.1, 198.51.100.2"}).call_times(1) == taken(1)


@pytest.mark.spec("RLM-10", "RLM-11", "RLM-15")
def test_a_whitelisted_address_has_limits_of_its_own(limits: Limits, clock: Traveller) -> None:
    limits.set(**{SHORT: "1/second", LONG: "1/hour", WHITELIST: f"198.51.100.0/24, {ADDRESS}"})
    caller = Caller()

    assert caller.call_times(11) == [*taken(10), *refused(1)]
    assert Caller("198.51.100.77").call_times(11) == [*taken(10), *refused(1)]
    assert Caller(OTHER_ADDRESS).call_times(2) == [*taken(1), *refused(1)]
    clock.shift(1)
    assert standing(caller.call()) == (10, 9)


@pytest.mark.spec("RLM-10", "RLM-15")
def test_a_whitelisted_address_submits_300_times_a_minute(limits: Limits, clock: Traveller) -> None:
    limits.set(**{WHITELIST: ADDRESS})
    caller = Caller()
    # An address's minute begins at a second of its own: use one up, and go to where the next begins.
    while (answer := caller.call()).status_code != 429:
        clock.shift(0.1)
    clock.shift(int(answer["Retry-After"]))
    statuses: list[int] = []

    for _ in range(31):
        statuses += caller.call_times(10)
        clock.shift(1)

    assert statuses == [*taken(300), *refused(10)]


@pytest.mark.spec("RLM-12", "RLM-15")
def test_a_key_submits_twice_a_second_from_wherever() -> None:
    callers = [Caller(f"192.0.2.{number}", api_key="somebody") for number in range(1, 4)]

    answers = [caller.call() for caller in callers]

    assert [answer.status_code for answer in answers] == [*taken(2), *refused(1)]
    assert answers[2].json()["message"].startswith("This API key has used up its limit of 2 per second;")
    assert Caller("192.0.2.4", api_key="somebody else").call_times(1) == taken(1)


def test_all_spellings_of_a_shared_key_share_one_budget() -> None:
    shared = "dbc97b96-a079-4123-897f-68f1e2278f6a"
    spellings = [shared, shared.upper(), shared.replace("dbc", "DBC")]

    answers = [Caller(f"192.0.2.{number}", api_key=key).call() for number, key in enumerate(spellings, 1)]

    assert [answer.status_code for answer in answers] == [*taken(2), *refused(1)]


@pytest.mark.spec("RLM-15")
def test_the_anonymous_key_submits_60_times_a_second() -> None:
    callers = [Caller(f"192.0.2.{number}") for number in range(1, 62)]

    assert [caller.call().status_code for caller in callers] == [*taken(60), *refused(1)]


@pytest.mark.spec("RLM-15")
def test_a_key_behind_whitelisted_addresses_submits_60_times_a_second(limits: Limits) -> None:
    limits.set(**{WHITELIST: "192.0.2.0/24"})
    callers = [Caller(f"192.0.2.{number}", api_key="somebody") for number in range(1, 62)]

    assert [caller.call().status_code for caller in callers] == [*taken(60), *refused(1)]


@pytest.mark.spec("RLM-16")
@pytest.mark.django_db
def test_every_post_counts(limits: Limits, horde: Horde) -> None:
    limits.set(**{SHORT: "6/second"})
    horde.pop()
    keyed = json.dumps(chat_body(horde={"operation_key": "once"})).encode()
    dry = json.dumps(chat_body(horde={"dry_run": True})).encode()
    bodies = [json.dumps(chat_body()).encode(), keyed, keyed, dry, b"no JSON", b"{}"]
    caller = Caller()

    statuses = [caller.call(body=body).status_code for body in bodies]

    assert statuses[0] == 202
    assert 429 not in statuses
    assert caller.call_times(1) == refused(1)


@pytest.mark.spec("RLM-16")
def test_a_call_without_a_key_counts() -> None:
    assert Caller(api_key=None).call_times(3) == [*taken(2), *refused(1)]


def test_both_mounts_of_a_route_share_its_budgets() -> None:
    assert Caller().call_times(1, CHAT) == taken(1)
    assert Caller().call_times(2, CHAT_ELSEWHERE) == [*taken(1), *refused(1)]


def test_another_method_has_a_budget_of_its_own() -> None:
    caller = Caller()

    assert caller.call_times(3) == [*taken(2), *refused(1)]
    assert caller.call_times(1, method="PUT") == [405]


def test_a_preflight_question_is_never_refused() -> None:
    assert Caller().call_times(100, method="OPTIONS") == [204] * 100
    assert Caller().call_times(1) == taken(1)


def test_every_answer_says_how_the_budget_stands(clock: Traveller) -> None:
    caller = Caller()

    answers = [caller.call() for _ in range(3)]

    assert [standing(answer) for answer in answers] == [(2, 1), (2, 0), (2, 0)]
    assert {answer["X-RateLimit-Reset"] for answer in answers} == {"1772366401"}
    assert {answer["Retry-After"] for answer in answers} == {"1"}
    assert {answer["Access-Control-Allow-Origin"] for answer in answers} == {"*"}
    assert all(answer["X-Request-Id"] and answer["Horde-Node"] for answer in answers)


@pytest.mark.django_db
def test_a_request_that_is_taken_says_so_too(limits: Limits, horde: Horde) -> None:
    horde.pop()

    answer = Caller().call(body=json.dumps(chat_body()).encode())

    assert (answer.status_code, standing(answer)) == (202, (2, 1))


def test_of_exceeded_limits_the_longest_says_when_to_come_back(limits: Limits) -> None:
    limits.set(**{SHORT: "1/second", LONG: "1/day"})

    answers = [Caller().call() for _ in range(2)]

    assert answers[1].status_code == 429
    assert answers[1].json()["message"].startswith("This address has used up its limit of 1 per day;")
    assert int(answers[1]["Retry-After"]) > 1


def test_a_key_is_known_by_a_keyed_hash_alone(limits: Limits) -> None:
    api_key = "a-key-nobody-may-see"
    budgets = RateLimits(limits.settings.HORDE).list_budgets(_submit_call(address=ADDRESS, api_key=api_key))
    limits.settings.SECRET_KEY = "x" * 50
    others = RateLimits(limits.settings.HORDE).list_budgets(_submit_call(address=ADDRESS, api_key=api_key))

    assert api_key not in repr(budgets)
    assert [budget.holder == other.holder for budget, other in zip(budgets, others, strict=True)] == [True, True, False]


def test_switched_off_nobody_is_refused(limits: Limits) -> None:
    limits.set(HORDE_RATE_LIMITS_ENABLED="false")

    caller = Caller()
    answers = [caller.call() for _ in range(100)]

    assert [answer.status_code for answer in answers] == taken(100)
    assert not any(answer.has_header("X-RateLimit-Limit") for answer in answers)


def test_the_switch_is_on_by_default() -> None:
    assert Environment.model_fields["rate_limits_enabled"].default is True


def _submit_call(*, address: str | None, api_key: str | None) -> Call:
    return Call(
        route="api/v2/generate/chat/async",
        method="POST",
        path_values=(),
        address=address,
        client_address=address,
        api_key=api_key,
    )
