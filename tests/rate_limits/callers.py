"""Words for callers who call too often. None of their requests needs the database, unless a test says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from hordechat.settings.env import Environment

CHAT = "/api/v2/generate/chat/async"
CHAT_ELSEWHERE = "/v2/generate/chat/async"
STATUS = "/api/v2/generate/chat/status/"
POP = "/api/v2/generate/text/pop"
SUBMIT = "/api/v2/generate/text/submit"
FIND_USER = "/api/v2/find_user"
HEARTBEAT = "/api/v2/status/heartbeat"

SWITCH = "HORDE_RATE_LIMITS_ENABLED"
ADDRESS = "192.0.2.1"
OTHER_ADDRESS = "192.0.2.2"
ANONYMOUS = "0000000000"


def count_in(settings: Settings, redis_url: str) -> None:
    """Keep the counts in another Redis from now on."""
    cache = {**settings.CACHES["rate_limits"], "LOCATION": redis_url}
    settings.CACHES = {**settings.CACHES, "rate_limits": cache}


def patient(redis_url: str) -> str:
    """Return the URL with a time-out that no busy machine reaches: a call not counted would not be refused."""
    return f"{redis_url}{'&' if '?' in redis_url else '?'}socket_timeout=10&socket_connect_timeout=10"


@dataclass
class Limits:
    """The settings of the limits; a change holds for every caller made after it."""

    settings: Settings
    environment: Environment

    def set(self, **changes: str) -> None:
        """Read the environment anew, with limits on and these variables."""
        known = self.environment.model_dump(by_alias=True)
        new = Environment.load({name: str(value) for name, value in known.items()} | {SWITCH: "true"} | changes)
        self.settings.HORDE = new


@dataclass
class Caller:
    """Somebody behind an address, with or without a key; every call is a connection of its own."""

    address: str = ADDRESS
    api_key: str | None = ANONYMOUS
    headers: Mapping[str, str] = field(default_factory=dict)
    http: Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = Client(REMOTE_ADDR=self.address)

    def call(self, path: str = CHAT, method: str = "POST", body: bytes = b"no JSON") -> Any:
        """Call once; the body no route takes is refused before anything is looked up."""
        key = {} if self.api_key is None else {"apikey": self.api_key}
        return self.http.generic(method, path, body, content_type="application/json", headers={**self.headers, **key})

    def call_times(self, times: int, path: str = CHAT, method: str = "POST") -> list[int]:
        """Call several times, and return the statuses."""
        return [self.call(path, method).status_code for _ in range(times)]


def standing(response: HttpResponse) -> tuple[int, int]:
    """Return limit and remaining of an answer."""
    return int(response["X-RateLimit-Limit"]), int(response["X-RateLimit-Remaining"])


def refused(times: int) -> list[int]:
    return [429] * times


def taken(times: int) -> list[int]:
    """Return the statuses of calls that got past the limits, to the refusal of their body."""
    return [400] * times
