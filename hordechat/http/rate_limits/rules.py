"""Who may call which route how often: the one table of rate limits, by route, method and headers, never by body."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from uuid import UUID

from django.utils.crypto import salted_hmac

from hordechat.settings.env import Environment
from hordechat.settings.rates import Rate, parse

UNLIMITED_ROUTES = {"status/heartbeat", "healthz/live", "healthz/ready", "metrics"}
"""What load balancers and monitors ask."""

MOUNTS = ("api/v2/", "v2/")
"""Where the public routes are; the limits of a route hold for both together."""

WHITELISTED_SUBMIT_RATES = parse("10/second;300/minute")
KEY_SUBMIT_RATES = parse("2/second")
WIDE_KEY_SUBMIT_RATES = parse("60/second")
"""For the anonymous key, which many share, and for whitelisted addresses."""

STATUS_RATES = parse("60/minute")
WORKER_RATES = parse("60/second")
OTHER_RATES = parse("90/minute")

ANONYMOUS_KEY = "0000000000"
NO_ADDRESS = "none"
IPV6_PREFIX_BITS = 64
"""What one customer of a provider gets at least; each address of it alone would be a limit for nobody."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a request shows of itself before its body is read."""

    route: str
    method: str
    path_values: tuple[str, ...]
    address: str | None
    api_key: str | None


@dataclass(frozen=True, slots=True)
class Budget:
    """The requests one caller has for a route and method in each period of a rate."""

    route: str
    method: str
    holder: str
    """Who or what is counted; of an API key only a keyed hash."""

    rate: Rate
    caller: str = "address"
    """What a refusal calls the holder."""


class RateLimits:
    """The limits of one environment."""

    def __init__(self, environment: Environment) -> None:
        self._chat_submit_rates = environment.chat_submit_rates
        self._whitelist = environment.whitelisted_networks

    def list_budgets(self, call: Call) -> list[Budget]:
        """Return every budget a call is taken from; all of them have to last."""
        route = _without_mount(call.route)
        method = "GET" if call.method == "HEAD" else call.method
        address = _holder_of(call.address)
        if route in UNLIMITED_ROUTES:
            return []
        match route, method:
            case "generate/chat/async", "POST":
                return self._submit_budgets(call, route, address)
            case "generate/chat/status/<str:request_id>", "GET" | "DELETE":
                holder = " ".join([address, *map(_one_spelling, call.path_values)])
                return [Budget(route, method, holder, rate) for rate in STATUS_RATES]
            case (("generate/text/pop" | "generate/text/submit"), "POST"):
                return [Budget(route, method, address, rate) for rate in WORKER_RATES]
            case _:
                return [Budget(route, method, address, rate) for rate in OTHER_RATES]

    def _submit_budgets(self, call: Call, route: str, address: str) -> list[Budget]:
        is_whitelisted = _is_in(call.address, self._whitelist)
        rates = WHITELISTED_SUBMIT_RATES if is_whitelisted else self._chat_submit_rates
        budgets = [Budget(route, "POST", address, rate) for rate in rates]
        if call.api_key is not None:
            is_wide = is_whitelisted or call.api_key == ANONYMOUS_KEY
            key_rates = WIDE_KEY_SUBMIT_RATES if is_wide else KEY_SUBMIT_RATES
            holder = _hash_of(call.api_key)
            budgets += [Budget(route, "POST", holder, rate, caller="API key") for rate in key_rates]
        return budgets


def _without_mount(route: str) -> str:
    for mount in MOUNTS:
        if route.startswith(mount):
            return route.removeprefix(mount)
    return route


def _holder_of(address: str | None) -> str:
    if address is None:
        return NO_ADDRESS
    parsed = _parse(address)
    return str(ip_network((parsed, IPV6_PREFIX_BITS), strict=False) if isinstance(parsed, IPv6Address) else parsed)


def _is_in(address: str | None, networks: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    return address is not None and any(_parse(address) in network for network in networks)


def _parse(address: str) -> IPv4Address | IPv6Address:
    parsed = ip_address(address)
    # A server that listens on both families shows IPv4 callers as `::ffff:192.0.2.1`; one /64 would hold all of them.
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


def _one_spelling(value: str) -> str:
    """Return one text for all spellings of an id, which a view takes for the same."""
    try:
        return str(UUID(value))
    except ValueError:
        return value


def _hash_of(api_key: str) -> str:
    """Return what stands for a key in Redis: it leads back to none."""
    return salted_hmac("hordechat.http.rate_limits", api_key, algorithm="sha256").hexdigest()
