"""Who may call which route how often: the one table of rate limits, by route, method and headers, never by body."""

from dataclasses import dataclass
from uuid import UUID

from django.utils.crypto import salted_hmac

from hordechat.infra import addresses
from hordechat.infra.addresses import Network
from hordechat.settings.env import Environment
from hordechat.settings.rates import Rate, parse

UNLIMITED_ROUTES = {"status/heartbeat", "healthz/live", "healthz/ready", "metrics"}
"""What load balancers and monitors ask."""

MOUNTS = ("api/v2/", "v2/")
"""Where the public routes are; the limits of a route hold for both together."""

TEXT_SUBMIT_RATES = parse("2/second;90/minute")
"""What the settings of the chat submit do not change."""

WHITELISTED_SUBMIT_RATES = parse("10/second;300/minute")
KEY_SUBMIT_RATES = parse("2/second")
WIDE_KEY_SUBMIT_RATES = parse("60/second")
"""For the anonymous key, which many share, and for whitelisted addresses."""

STATUS_RATES = parse("60/minute")
WORKER_RATES = parse("60/second")
OTHER_RATES = parse("90/minute")

ANONYMOUS_KEY = "0000000000"
NO_ADDRESS = "none"


@dataclass(frozen=True, slots=True)
class Call:
    """What a request shows of itself before its body is read."""

    route: str
    method: str
    path_values: tuple[str, ...]
    address: str | None
    """The connection's."""

    client_address: str | None
    """The client's: another one behind a service with a known proxy passkey."""

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
                return self._submit_budgets(call, route, self._chat_submit_rates)
            case "generate/text/async", "POST":
                return self._submit_budgets(call, route, TEXT_SUBMIT_RATES)
            case (
                "generate/chat/status/<str:request_id>" | "generate/text/status/<str:request_id>",
                "GET" | "DELETE",
            ) | ("generate/text/request/<str:request_id>", "GET"):
                holder = " ".join([_holder_of(call.client_address), *map(_one_spelling, call.path_values)])
                return [Budget(route, method, holder, rate) for rate in STATUS_RATES]
            case (("generate/text/pop" | "generate/text/submit"), "POST"):
                return [Budget(route, method, address, rate) for rate in WORKER_RATES]
            case _:
                return [Budget(route, method, address, rate) for rate in OTHER_RATES]

    def _submit_budgets(self, call: Call, route: str, ordinary_rates: tuple[Rate, ...]) -> list[Budget]:
        is_whitelisted = _is_in(call.client_address, self._whitelist)
        rates = WHITELISTED_SUBMIT_RATES if is_whitelisted else ordinary_rates
        budgets = [Budget(route, "POST", _holder_of(call.client_address), rate) for rate in rates]
        if call.api_key is not None:
            is_wide = is_whitelisted or call.api_key == ANONYMOUS_KEY
            key_rates = WIDE_KEY_SUBMIT_RATES if is_wide else KEY_SUBMIT_RATES
            holder = _hash_of(_one_spelling(call.api_key))
            budgets += [Budget(route, "POST", holder, rate, caller="API key") for rate in key_rates]
        return budgets


def _without_mount(route: str) -> str:
    for mount in MOUNTS:
        if route.startswith(mount):
            return route.removeprefix(mount)
    return route


def _holder_of(address: str | None) -> str:
    return NO_ADDRESS if address is None else str(addresses.caller_of(addresses.parse(address)))


def _is_in(address: str | None, networks: tuple[Network, ...]) -> bool:
    return address is not None and any(addresses.parse(address) in network for network in networks)


def _one_spelling(value: str) -> str:
    """Return one text for all spellings of an id or a shared key, which a view takes for the same."""
    try:
        return str(UUID(value))
    except ValueError:
        return value


def _hash_of(api_key: str) -> str:
    """Return what stands for a key in Redis: it leads back to none."""
    return salted_hmac("hordechat.http.rate_limits", api_key, algorithm="sha256").hexdigest()
