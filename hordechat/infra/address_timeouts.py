"""Addresses and networks that are not served for a while, each a key in Redis that ends by itself (decision L3).

A request asks for all networks its address is in at once, so that what it costs does not grow with what is kept. Losing
Redis loses time-outs, and nobody waits for it: an address is then served.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeVar

from redis import RedisError

from hordechat.infra import addresses, redis
from hordechat.infra.addresses import Address, Network

Result = TypeVar("Result")

KEY_PREFIX = "horde:address-timeout:"
WIDEST_PREFIX_BITS = {4: 8, 6: 16}
"""By IP version; a slip of the pen must not time out half of the internet, and a request asks up to here."""

MAPPED_PREFIX_BITS = 96
"""Of an IPv6 network, how many say that the rest is an IPv4 address."""

SCAN_COUNT = 1000


class BadNetwork(ValueError):
    """The text names no address or network that can be timed out."""


class TimeoutsUnreachable(RedisError):
    """Redis did not answer an operator; a `RedisError`, so that `redis.best_effort` takes it for one."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"Redis, which keeps the time-outs of addresses, did not answer ({type(error).__name__}). "
            "Try again when it does: doing it twice harms nothing."
        )


@dataclass(frozen=True, slots=True)
class AddressTimeout:
    """Whose callers are not served, and until when."""

    network: Network
    ends_at: datetime

    def seconds_left(self, now: datetime) -> int:
        """Return how long it lasts, at most 0 when it has ended."""
        return math.ceil((self.ends_at - now).total_seconds())

    @property
    def name(self) -> str:
        """The network, or the address when it is one alone."""
        is_single = self.network.prefixlen == self.network.max_prefixlen
        return str(self.network.network_address) if is_single else str(self.network)


def find_seconds_left(address: str | None, *, now: datetime) -> int | None:
    """Return for how many more seconds an address is timed out; None when it is not, or Redis cannot tell.

    Of several networks that hold the address the longest decides.
    """
    if address is None:
        return None
    keys = _keys_with(addresses.parse(address))
    found = redis.best_effort("address time-out", lambda: redis.address_timeouts().mget(keys)) or []
    ends = [int(value) for value in found if value is not None]
    seconds_left = math.ceil(max(ends, default=0) - now.timestamp())
    return seconds_left if seconds_left > 0 else None


def put(network: str, *, seconds: int, now: datetime) -> AddressTimeout:
    """Time out an address or a network (`198.51.100.0/24`) from now on, in place of the time-out it has.

    An IPv6 address is kept as its /64, which one customer of a provider has at least.

    Raises:
        BadNetwork: the text is neither, or the network is too wide.
        TimeoutsUnreachable: Redis does not answer.
    """
    assert seconds > 0, "a time-out has to end in the future"
    kept = _parse_network(network)
    ends_at_seconds = math.ceil(now.timestamp() + seconds)
    _ask(lambda: redis.address_timeouts().set(_key_of(kept), ends_at_seconds, ex=seconds))
    return AddressTimeout(network=kept, ends_at=datetime.fromtimestamp(ends_at_seconds, tz=UTC))


def remove(network: str) -> bool:
    """End the time-out of an address or a network; return whether it had one. Those of wider networks stay.

    Raises:
        BadNetwork: the text is neither, or the network is too wide.
        TimeoutsUnreachable: Redis does not answer.
    """
    kept = _parse_network(network)
    return bool(_ask(lambda: redis.address_timeouts().delete(_key_of(kept))))


def list_all(*, now: datetime) -> list[AddressTimeout]:
    """Return every time-out that lasts, by network; for operators, it reads all keys.

    Raises:
        TimeoutsUnreachable: Redis does not answer.
    """
    keys = _ask(lambda: sorted(set(redis.address_timeouts().scan_iter(match=f"{KEY_PREFIX}*", count=SCAN_COUNT))))
    values = _ask(lambda: redis.address_timeouts().mget(keys)) if keys else []
    timeouts = [
        AddressTimeout(network=_network_of(key), ends_at=datetime.fromtimestamp(int(value), tz=UTC))
        for key, value in zip(keys, values, strict=True)
        if value is not None
    ]
    lasting = [timeout for timeout in timeouts if timeout.seconds_left(now) > 0]
    return sorted(lasting, key=lambda timeout: (timeout.network.version, timeout.network))


def _parse_network(text: str) -> Network:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise BadNetwork(
            f"{text!r} is no address or network such as 198.51.100.7, 198.51.100.0/24 or 2001:db8::/48."
        ) from None
    if isinstance(network, IPv6Network):
        network = _as_ipv4(network) or network
    if isinstance(network, IPv6Network) and network.prefixlen == network.max_prefixlen:
        network = network.supernet(new_prefix=addresses.IPV6_PREFIX_BITS)
    widest = WIDEST_PREFIX_BITS[network.version]
    if network.prefixlen < widest:
        raise BadNetwork(f"{network} is too wide: IPv{network.version} networks are timed out up to /{widest}.")
    return network


def _as_ipv4(network: IPv6Network) -> IPv4Network | None:
    mapped = network.network_address.ipv4_mapped
    if mapped is None or network.prefixlen < MAPPED_PREFIX_BITS:
        return None
    return IPv4Network((mapped, network.prefixlen - MAPPED_PREFIX_BITS))


def _keys_with(address: Address) -> list[str]:
    """Return the keys of every network an address is in: plain numbers, as 113 network objects would take 5 ms."""
    number, length = int(address), address.max_prefixlen
    return [
        _key(version=address.version, prefix_bits=bits, prefix=number >> (length - bits))
        for bits in range(WIDEST_PREFIX_BITS[address.version], length + 1)
    ]


def _key_of(network: Network) -> str:
    prefix = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
    return _key(version=network.version, prefix_bits=network.prefixlen, prefix=prefix)


def _key(*, version: int, prefix_bits: int, prefix: int) -> str:
    return f"{KEY_PREFIX}{version}/{prefix_bits}/{prefix:x}"


def _network_of(key: str) -> Network:
    version, prefix_bits, prefix = key.removeprefix(KEY_PREFIX).split("/")
    kind, length = (IPv4Network, 32) if version == "4" else (IPv6Network, 128)
    return kind((int(prefix, 16) << (length - int(prefix_bits)), int(prefix_bits)))


def _ask(call: Callable[[], Result]) -> Result:
    try:
        return call()
    except (RedisError, OSError) as error:
        raise TimeoutsUnreachable(error) from error
