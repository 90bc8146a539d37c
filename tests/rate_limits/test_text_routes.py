"""The limits of the text routes a client calls: chat's values, and budgets that chat does not spend."""

from collections.abc import Sequence
from itertools import chain

import pytest
from django.http import HttpRequest

from hordechat.http.rate_limits import counting
from hordechat.http.rate_limits.rules import Budget, Call, RateLimits
from tests.rate_limits.callers import ADDRESS, ANONYMOUS, OTHER_ADDRESS, Limits

TEXT_SUBMIT = "generate/text/async"
CHAT_SUBMIT = "generate/chat/async"
TEXT_STATUS = "generate/text/status/<str:request_id>"
CHAT_STATUS = "generate/chat/status/<str:request_id>"
TEXT_REQUEST = "generate/text/request/<str:request_id>"

WHITELIST = "HORDE_RATE_LIMITS_WHITELIST"
REQUEST_ID = "6f0c1c1e-0000-4000-8000-00000000abcd"
CONNECTION = "198.51.100.1"

pytestmark = pytest.mark.usefixtures("clock")


def call(route: str, method: str = "POST", *path_values: str, client: str = ADDRESS, key: str | None = None) -> Call:
    """Return a call through a service, so that no address but the client's can pass for it."""
    return Call(
        route=f"api/v2/{route}",
        method=method,
        path_values=path_values,
        address=CONNECTION,
        client_address=client,
        api_key=key,
    )


def budgets_of(limits: Limits, asked: Call) -> list[Budget]:
    return RateLimits(limits.settings.HORDE).list_budgets(asked)


def said(budgets: Sequence[Budget]) -> list[tuple[str, str]]:
    """Return who is counted and how often they may call."""
    return [(budget.caller, f"{budget.rate.count}/{budget.rate.period}") for budget in budgets]


def is_refused(budgets: Sequence[Budget]) -> bool:
    usage = counting.spend(HttpRequest(), budgets)
    assert usage is not None, "a call that was not counted proves nothing"
    return usage.is_exceeded


@pytest.mark.parametrize(
    ("client", "key", "expected"),
    [
        (ADDRESS, None, [("address", "2/second"), ("address", "90/minute")]),
        (ADDRESS, "one", [("address", "2/second"), ("address", "90/minute"), ("API key", "2/second")]),
        (ADDRESS, ANONYMOUS, [("address", "2/second"), ("address", "90/minute"), ("API key", "60/second")]),
        (OTHER_ADDRESS, "one", [("address", "10/second"), ("address", "300/minute"), ("API key", "60/second")]),
        (OTHER_ADDRESS, None, [("address", "10/second"), ("address", "300/minute")]),
    ],
)
def test_the_text_submit_has_its_own_values_whatever_the_chat_settings_say(
    limits: Limits, client: str, key: str | None, expected: list[tuple[str, str]]
) -> None:
    limits.set(
        HORDE_CHAT_REQUEST_2SEC_LIMIT_PER_IP="7/second",
        HORDE_CHAT_REQUEST_90MIN_LIMIT_PER_IP="77/day",
        **{WHITELIST: OTHER_ADDRESS},
    )

    budgets = budgets_of(limits, call(TEXT_SUBMIT, client=client, key=key))

    assert said(budgets) == expected
    assert {budget.holder for budget in budgets if budget.caller == "address"} == {client}


@pytest.mark.spec("RLM-04", "RLM-05", "RLM-12")
def test_unset_the_chat_submit_has_the_values_of_the_text_submit(limits: Limits) -> None:
    chat, text = (budgets_of(limits, call(route, key="one")) for route in (CHAT_SUBMIT, TEXT_SUBMIT))

    assert said(chat) == said(text)


@pytest.mark.spec("RLM-13")
@pytest.mark.parametrize(("spent", "other"), [(CHAT_SUBMIT, TEXT_SUBMIT), (TEXT_SUBMIT, CHAT_SUBMIT)])
def test_chat_and_text_submits_do_not_spend_each_others_budget(limits: Limits, spent: str, other: str) -> None:
    spending = [is_refused(budgets_of(limits, call(spent))) for _ in range(3)]
    others = [is_refused(budgets_of(limits, call(other))) for _ in range(3)]

    assert (spending, others) == ([False, False, True], [False, False, True])


@pytest.mark.spec("RLM-19")
@pytest.mark.parametrize(("spent", "other"), [(CHAT_SUBMIT, TEXT_SUBMIT), (TEXT_SUBMIT, CHAT_SUBMIT)])
def test_a_keys_chat_and_text_submits_do_not_spend_each_others_budget(limits: Limits, spent: str, other: str) -> None:
    # From an address of its own each, so that the key alone is used up.
    clients = iter(f"203.0.113.{number}" for number in range(1, 100))

    spending = [is_refused(budgets_of(limits, call(spent, client=next(clients), key="one"))) for _ in range(3)]
    others = [is_refused(budgets_of(limits, call(other, client=next(clients), key="one"))) for _ in range(3)]

    assert (spending, others) == ([False, False, True], [False, False, True])


@pytest.mark.parametrize(
    ("route", "method"),
    [(TEXT_STATUS, "GET"), (TEXT_STATUS, "DELETE"), (TEXT_REQUEST, "GET"), (CHAT_STATUS, "GET")],
)
def test_a_request_is_looked_at_60_times_a_minute_by_each_client(limits: Limits, route: str, method: str) -> None:
    spellings = [REQUEST_ID, REQUEST_ID.upper(), f"{{{REQUEST_ID}}}"]

    budgets = [budgets_of(limits, call(route, method, spelling)) for spelling in spellings]

    assert [said(found) for found in budgets] == [[("address", "60/minute")]] * 3
    assert {budget.holder for budget in chain(*budgets)} == {f"{ADDRESS} {REQUEST_ID}"}


def test_each_route_method_and_id_has_a_budget_of_its_own(limits: Limits) -> None:
    asked = [
        call(route, method, request_id, client=client)
        for route, method in (
            (TEXT_STATUS, "GET"),
            (TEXT_STATUS, "DELETE"),
            (TEXT_REQUEST, "GET"),
            (CHAT_STATUS, "GET"),
        )
        for request_id in ("one", "two")
        for client in (ADDRESS, OTHER_ADDRESS)
    ]

    found = [budget for one in asked for budget in budgets_of(limits, one)]

    assert len(found) == len(set(found)) == 16


@pytest.mark.parametrize(
    ("route", "method", "limit"),
    [
        (TEXT_SUBMIT, "GET", "90/minute"),
        (TEXT_STATUS, "POST", "90/minute"),
        (TEXT_REQUEST, "DELETE", "90/minute"),
        ("generate/text/pop", "POST", "60/second"),
        ("generate/text/submit", "POST", "60/second"),
    ],
)
def test_any_other_call_is_known_by_its_connection(limits: Limits, route: str, method: str, limit: str) -> None:
    budgets = budgets_of(limits, call(route, method, "one", key="one"))

    assert said(budgets) == [("address", limit)]
    assert budgets[0].holder == CONNECTION
