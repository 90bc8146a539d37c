"""An address is timed out by itself or with a network it is in, until a moment; without Redis nobody is."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

import pytest
import redis as client_library
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from hordechat.infra import address_timeouts, redis
from hordechat.infra.address_timeouts import BadNetwork, TimeoutsUnreachable
from hordechat.local import valkey
from hordechat.local.valkey import Valkey
from hordechat.settings.env import Environment

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
HOUR = 3600


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    with valkey.running(tmp_path_factory.mktemp("timeouts") / "valkey") as running:
        yield running


@pytest.fixture
def server(shared_server: Valkey, monkeypatch: pytest.MonkeyPatch) -> Iterator[Valkey]:
    """Let this process use an empty Redis, as patiently as no busy machine needs."""
    point_at(shared_server, monkeypatch)
    redis.address_timeouts().flushall()
    yield shared_server
    redis._client.cache_clear()


@pytest.fixture
def dead_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Valkey]:
    with valkey.running(tmp_path / "valkey") as running:
        point_at(running, monkeypatch)
        running.stop()
        yield running
    redis._client.cache_clear()


def point_at(server: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    environment: Environment = settings.HORDE.model_copy(
        update={"redis_url": server.url, "redis_timeout_milliseconds": 5000}
    )
    monkeypatch.setattr(settings, "HORDE", environment)
    redis._client.cache_clear()


def put(network: str, *, seconds: int = HOUR) -> str:
    return address_timeouts.put(network, seconds=seconds, now=NOW).name


def seconds_left(address: str | None, *, after: float = 0) -> int | None:
    return address_timeouts.find_seconds_left(address, now=NOW + timedelta(seconds=after))


def names(*, after: float = 0) -> list[str]:
    return [timeout.name for timeout in address_timeouts.list_all(now=NOW + timedelta(seconds=after))]


def commands_run(server: Valkey) -> dict[str, int]:
    """Return how often each command ran since the counts were last reset."""
    with client_library.Redis.from_url(server.url, decode_responses=True) as client:
        found = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): stats["calls"] for name, stats in found.items()}


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        ("198.51.100.7", ["198.51.100.7", "::ffff:198.51.100.7"], ["198.51.100.6", "198.51.100.8", "::198.51.100.7"]),
        ("::ffff:198.51.100.7", ["198.51.100.7", "::ffff:198.51.100.7"], ["198.51.100.8"]),
        ("198.51.100.0/24", ["198.51.100.0", "198.51.100.255"], ["198.51.99.255", "198.51.101.0"]),
        ("198.51.100.9/24", ["198.51.100.0", "198.51.100.255"], ["198.51.99.255", "198.51.101.0"]),
        ("::ffff:198.51.100.0/120", ["198.51.100.0", "198.51.100.255"], ["198.51.101.0"]),
        ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]),
        ("2001:db8::1", ["2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"], ["2001:db8:0:1::1", "2001:db7:ffff:ffff::1"]),
        ("2001:db8::1/128", ["2001:db8::2"], ["2001:db8:0:1::1"]),
        ("2001:db8::/48", ["2001:db8::1", "2001:db8:0:ffff::1"], ["2001:db8:1::1"]),
        ("2001::/16", ["2001::", "2001:ffff::1"], ["2002::", "2000:ffff::1"]),
        ("2001:db8::10/124", ["2001:db8::10", "2001:db8::1f"], ["2001:db8::f", "2001:db8::20"]),
        ("::1", ["::1", "::2"], ["0.0.0.1", "0:0:0:1::"]),
        ("0.0.0.0/8", ["0.0.0.1"], ["1.0.0.0"]),
    ],
)
def test_who_is_timed_out(server: Valkey, network: str, inside: list[str], outside: list[str]) -> None:
    put(network)

    assert [seconds_left(address) for address in inside] == [HOUR] * len(inside)
    assert [seconds_left(address) for address in outside] == [None] * len(outside)


def test_a_caller_without_an_address_is_not_timed_out(server: Valkey) -> None:
    put("0.0.0.0/8")

    assert seconds_left(None) is None


@pytest.mark.parametrize(
    ("network", "kept"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7/32", "198.51.100.7"),
        ("::ffff:c633:6407", "198.51.100.7"),
        ("198.51.100.9/24", "198.51.100.0/24"),
        ("2001:DB8::0:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("2001:db8::/56", "2001:db8::/56"),
        ("2001:db8::10/124", "2001:db8::10/124"),
        ("0.0.0.0/8", "0.0.0.0/8"),
        ("::/16", "::/16"),
    ],
)
def test_what_is_kept_is_listed_and_removed_under_any_of_its_names(server: Valkey, network: str, kept: str) -> None:
    assert put(network) == kept
    assert names() == [kept]
    assert [address_timeouts.remove(network) for _ in range(2)] == [True, False]

    put(network)
    assert [address_timeouts.remove(kept) for _ in range(2)] == [True, False]
    assert names() == []


@pytest.mark.parametrize(
    ("network", "complaint"),
    [
        ("", "'' is no address or network"),
        ("localhost", "'localhost' is no address or network such as 198.51.100.7, 198.51.100.0/24 or 2001:db8::/48."),
        ("198.51.100", "is no address"),
        ("198.51.100.7/33", "is no address"),
        ("*", "is no address"),
        ("198.51.100.7,198.51.100.8", "is no address"),
        ("10.0.0.0/7", "10.0.0.0/7 is too wide: IPv4 networks are timed out up to /8."),
        ("0.0.0.0/0", "is too wide"),
        ("::ffff:0.0.0.0/96", "0.0.0.0/0 is too wide"),
        ("2000::/15", "2000::/15 is too wide: IPv6 networks are timed out up to /16."),
        ("::/0", "is too wide"),
    ],
)
def test_refuses_what_cannot_be_timed_out(server: Valkey, network: str, complaint: str) -> None:
    with pytest.raises(BadNetwork) as refusal:
        put(network)
    with pytest.raises(BadNetwork):
        address_timeouts.remove(network)

    assert complaint in str(refusal.value)
    assert names() == []


def test_a_time_out_ends_by_the_clock(server: Valkey) -> None:
    put("198.51.100.7", seconds=10)

    assert [seconds_left("198.51.100.7", after=after) for after in (0, 0.5, 9, 9.5, 10, 11)] == [
        10,
        10,
        1,
        1,
        None,
        None,
    ]
    assert (names(after=9.5), names(after=10)) == (["198.51.100.7"], [])


def test_a_time_out_leaves_redis_by_itself(server: Valkey) -> None:
    put("198.51.100.7", seconds=720 * HOUR)

    with client_library.Redis.from_url(f"{server.url}?db=5", decode_responses=True) as client:
        lives = [client.ttl(key) for key in client.scan_iter()]

    assert len(lives) == 1
    assert 719 * HOUR < lives[0] <= 720 * HOUR


def test_the_last_word_about_a_network_counts(server: Valkey) -> None:
    put("198.51.100.7", seconds=HOUR)
    put("198.51.100.7", seconds=60)

    assert seconds_left("198.51.100.7") == 60
    assert names() == ["198.51.100.7"]


def test_of_several_networks_the_longest_time_out_decides(server: Valkey) -> None:
    put("198.51.100.7", seconds=60)
    put("198.51.0.0/16", seconds=600)
    put("198.51.100.0/24", seconds=6)

    assert seconds_left("198.51.100.7") == 600
    assert address_timeouts.remove("198.51.0.0/16")
    assert seconds_left("198.51.100.7") == 60
    assert seconds_left("198.51.100.8") == 6


def test_lists_by_network_ipv4_first(server: Valkey) -> None:
    for network in ("2001:db8::/48", "203.0.113.9", "198.51.100.0/24", "2001:db8::/32", "9.9.9.9"):
        put(network)

    found = address_timeouts.list_all(now=NOW)

    assert [timeout.name for timeout in found] == [
        "9.9.9.9",
        "198.51.100.0/24",
        "203.0.113.9",
        "2001:db8::/32",
        "2001:db8::/48",
    ]
    assert {timeout.ends_at for timeout in found} == {NOW + timedelta(hours=1)}
    assert {timeout.seconds_left(NOW) for timeout in found} == {HOUR}


@pytest.mark.parametrize("address", ["198.51.100.7", "2001:db8::1"])
def test_a_look_is_one_command_however_much_is_kept(server: Valkey, address: str) -> None:
    for number in range(200):
        put(f"10.{number}.0.0/16")
    seconds_left(address)
    redis.address_timeouts().config_resetstat()

    seconds_left(address)

    ran = commands_run(server)
    assert {name: calls for name, calls in ran.items() if name in {"mget", "get", "scan", "keys", "exists"}} == {
        "mget": 1
    }


def test_without_redis_nobody_is_timed_out(dead_server: Valkey, caplog: pytest.LogCaptureFixture) -> None:
    operation = {"operation": "address time-out"}
    before = REGISTRY.get_sample_value("horde_best_effort_failures_total", operation) or 0

    assert [seconds_left("198.51.100.7") for _ in range(3)] == [None] * 3
    assert (REGISTRY.get_sample_value("horde_best_effort_failures_total", operation) or 0) == before + 3
    assert [record.getMessage() for record in caplog.records] == ["address time-out failed: Redis ConnectionError"]


def test_without_redis_an_operator_is_told(dead_server: Valkey) -> None:
    with pytest.raises(TimeoutsUnreachable, match="did not answer \\(ConnectionError\\)"):
        put("198.51.100.7")
    with pytest.raises(TimeoutsUnreachable):
        address_timeouts.remove("198.51.100.7")
    with pytest.raises(TimeoutsUnreachable):
        names()


def test_a_server_that_puts_one_may_do_so_at_best_effort(dead_server: Valkey) -> None:
    assert redis.best_effort("putting", lambda: put("198.51.100.7")) is None


@given(st.ip_addresses(), st.integers(0, 128))
def test_every_network_is_known_by_the_key_its_addresses_ask_for(
    address: IPv4Address | IPv6Address, narrower_bits: int
) -> None:
    widest = address_timeouts.WIDEST_PREFIX_BITS[address.version]
    bits = widest + narrower_bits % (address.max_prefixlen - widest + 1)
    kind = IPv4Network if isinstance(address, IPv4Address) else IPv6Network
    network = kind((int(address), bits), strict=False)

    key = address_timeouts._key_of(network)

    assert address_timeouts._network_of(key) == network
    assert address_timeouts._keys_with(address)[bits - widest] == key
