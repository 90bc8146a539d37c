"""How limits are written: what is understood, and what stops the start under the variable's name."""

import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from hordechat.settings.env import BadEnvironment, Environment
from hordechat.settings.rates import ADVICE, Rate, parse
from tests.spec.rows import PROJECT

SHORT = "HORDE_CHAT_REQUEST_2SEC_LIMIT_PER_IP"
LONG = "HORDE_CHAT_REQUEST_90MIN_LIMIT_PER_IP"
NETWORKS = "has to look like 203.0.113.7,2001:db8::/32, addresses or networks"


def load(**changes: str) -> Environment:
    known: dict[str, Any] = settings.HORDE.model_dump(by_alias=True)
    return Environment.load({name: str(value) for name, value in known.items()} | changes)


@pytest.mark.spec("RLM-03")
@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("5/second", [(5, 1)]),
        ("300/minute", [(300, 60)]),
        ("1/hour", [(1, 3600)]),
        ("999999999/day", [(999999999, 86400)]),
        ("5/second;300/minute", [(5, 1), (300, 60)]),
        (" 5/second ; 300/minute ", [(5, 1), (300, 60)]),
        ("5/second;5/second", [(5, 1)]),
    ],
)
def test_reads_every_limit_of_a_setting(text: str, rates: list[tuple[int, int]]) -> None:
    assert [(rate.count, rate.seconds) for rate in parse(text)] == rates


@pytest.mark.spec("RLM-03")
@pytest.mark.parametrize("name", [SHORT, LONG])
@pytest.mark.parametrize(
    "text",
    [
        "5",
        "5/month",
        "5/m",
        "5/seconds",
        "5/2second",
        "5 per second",
        "5/Second",
        "/second",
        "0/second",
        "-1/second",
        "1.5/second",
        "05/second",
        "\u0665/second",
        "1000000000/second",
        "5/second;",
        ";5/second",
        "5/second,300/minute",
        "5/second;300/month",
        "none",
    ],
)
def test_refuses_what_is_no_limit_at_the_start(name: str, text: str) -> None:
    with pytest.raises(BadEnvironment, match=f"  {name}: {ADVICE}\\."):
        load(**{name: text})


def test_a_process_with_a_limit_it_cannot_read_does_not_start() -> None:
    answer = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=PROJECT,
        env={**os.environ, LONG: "90/month"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 1
    assert f"  {LONG}: {ADVICE}.\n" in answer.stderr


@pytest.mark.spec("RLM-04", "RLM-05")
def test_unset_the_limits_are_those_of_the_text_submit() -> None:
    assert load(**{SHORT: "", LONG: ""}).chat_submit_rates == (Rate(2, "second"), Rate(90, "minute"))


@pytest.mark.spec("RLM-06")
def test_both_settings_hold_at_once_and_an_equal_limit_once() -> None:
    assert load(**{SHORT: "3/second;9/minute", LONG: "9/minute;100/hour"}).chat_submit_rates == (
        Rate(3, "second"),
        Rate(9, "minute"),
        Rate(100, "hour"),
    )


def test_reads_addresses_and_networks() -> None:
    found = load(HORDE_RATE_LIMITS_WHITELIST="203.0.113.7, 198.51.100.9/24,2001:db8::1,").whitelisted_networks

    assert [str(network) for network in found] == ["203.0.113.7/32", "198.51.100.0/24", "2001:db8::1/128"]
    assert load().whitelisted_networks == ()


@pytest.mark.parametrize("text", ["localhost", "203.0.113", "203.0.113.7/33", "203.0.113.7;203.0.113.8", "*"])
def test_refuses_what_is_no_address(text: str) -> None:
    with pytest.raises(BadEnvironment, match=f"  HORDE_RATE_LIMITS_WHITELIST: {NETWORKS}\\."):
        load(HORDE_RATE_LIMITS_WHITELIST=text)


@pytest.mark.parametrize("text", ["-1", "11", "all"])
def test_refuses_a_number_of_proxies_that_cannot_be(text: str) -> None:
    with pytest.raises(BadEnvironment, match="  HORDE_TRUSTED_PROXY_HOPS: "):
        load(HORDE_TRUSTED_PROXY_HOPS=text)


def test_counts_live_in_a_cache_of_their_own_that_fails_open() -> None:
    caches: dict[str, Any] = settings.CACHES
    cache = caches[settings.RATELIMIT_USE_CACHE]

    assert settings.RATELIMIT_FAIL_OPEN is True
    assert cache["KEY_PREFIX"] != caches["default"]["KEY_PREFIX"]
    assert cache["OPTIONS"]["IGNORE_EXCEPTIONS"] is True
    assert cache["OPTIONS"]["SOCKET_TIMEOUT"] == cache["OPTIONS"]["SOCKET_CONNECT_TIMEOUT"] == 0.05
