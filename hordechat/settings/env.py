"""The process's settings, read from the environment once and typed.

A bad value stops the start with a sentence that names the variable. `docs/settings.md` is generated from this module.
"""

import os
import socket
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from hordechat.settings import rates
from hordechat.settings.rates import Rate

REDIS_CACHE_DATABASE = 0
REDIS_BROKER_DATABASE = 1
REDIS_ADDRESS_TIMEOUT_DATABASE = 5
REDIS_CHAT_SIGNAL_DATABASE = 7
"""The logical database of chat leases, streams and signals (SIG-02)."""

MINIMUM_SECRET_CHARACTERS = 32


class BadEnvironment(SystemExit):
    """The environment cannot be used; the process stops and the message names the variable."""


def _split(url: str, advice: str) -> SplitResult:
    """Split a URL; what is wrong with it is never quoted, its password may be in there."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError(advice) from None
    return parts


def _require_postgresql_url(value: str) -> str:
    advice = "has to look like postgresql://user:password@host:5432/database, special characters as %xx"
    parts = _split(value, advice)
    if parts.scheme not in {"postgresql", "postgres"} or not parts.path.strip("/"):
        raise ValueError(advice)
    return value


def _require_redis_url(value: str) -> str:
    advice = "has to look like redis://host:6379 or unix:///path/to/socket"
    parts = _split(value, advice)
    if not (parts.hostname if parts.scheme in {"redis", "rediss"} else parts.scheme == "unix" and parts.path):
        raise ValueError(advice)
    return value


def _require_url_or_path(value: str) -> str:
    advice = "has to be an http(s) URL or the absolute path of a file"
    parts = _split(value, advice)
    if not (parts.hostname if parts.scheme in {"http", "https"} else not parts.scheme and value.startswith("/")):
        raise ValueError(advice)
    return value


def _require_peppers(value: str) -> str:
    entries = [entry.partition(":") for entry in value.split(",")]
    if len({identifier for identifier, _, _ in entries}) < len(entries):
        message = "names two secrets by the same id"
        raise ValueError(message)
    for identifier, _, secret in entries:
        if not identifier.isidentifier() or len(secret) < MINIMUM_SECRET_CHARACTERS:
            message = (
                f"has to look like id:secret[,id:secret…], each secret at least {MINIMUM_SECRET_CHARACTERS} characters"
            )
            raise ValueError(message)
    return value


def _require_rates(value: str) -> str:
    rates.parse(value)
    return value


def _require_networks(value: str) -> str:
    try:
        _networks_of(value)
    except ValueError:
        message = "has to look like 203.0.113.7,2001:db8::/32, addresses or networks"
        raise ValueError(message) from None
    return value


def _networks_of(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(entry.strip(), strict=False) for entry in value.split(",") if entry.strip())


def _is_not_off(value: object) -> bool:
    """Read a switch that is on unless it is plainly off (ADM-11)."""
    return str(value).strip().lower() not in {"0", "false", "no", "off"}


def _is_on(value: object) -> bool:
    """Read a switch that is off unless it is plainly on."""
    return str(value).strip().lower() in {"1", "true", "yes", "on"}


class Environment(BaseModel):
    """Every variable the project reads, under the name it has in the environment."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    database_url: Annotated[str, AfterValidator(_require_postgresql_url)] = Field(
        alias="DATABASE_URL",
        description="PostgreSQL 15 or later, as `postgresql://user:password@host:5432/database`. "
        "A socket folder goes into the query, `?host=/run/postgresql`, as do libpq's other options, "
        "`?sslmode=require`.",
    )
    redis_url: Annotated[str, AfterValidator(_require_redis_url)] = Field(
        alias="REDIS_URL",
        description="A server of the Redis protocol, 6.2 or later, without a database number: the project uses "
        "databases 0 (cache), 1 (Celery broker), 5 (time-outs of addresses) and 7 (chat leases, streams and signals).",
    )
    secret_key: Annotated[str, Field(min_length=MINIMUM_SECRET_CHARACTERS)] = Field(
        alias="HORDE_SECRET_KEY", description="Signs admin sessions. At least 32 characters, the same on every machine."
    )
    api_key_peppers: Annotated[str, AfterValidator(_require_peppers)] = Field(
        alias="HORDE_API_KEY_PEPPERS",
        description="Keys of the HMAC that API keys are stored under, as `id:secret`, at least 32 characters each. "
        "The first one signs new keys; the others keep older keys valid while the pepper rotates.",
    )
    allowed_hosts: str = Field(
        "localhost,127.0.0.1,[::1]",
        alias="HORDE_ALLOWED_HOSTS",
        description="Host names the site answers to, comma separated.",
    )
    url: str = Field(
        "http://localhost:7001",
        alias="HORDE_URL",
        pattern=r"^https?://",
        description="The public address of the site; error messages and pages point to it.",
    )
    node_name: str = Field(
        default_factory=socket.gethostname,
        alias="HORDE_NODE_NAME",
        description="The name this machine gives itself in the `Horde-Node` header. Default: the host name.",
    )
    port: int = Field(
        7001, alias="HORDE_PORT", ge=1, le=65535, description="The port the API listens on, as `Horde-Node` shows it."
    )
    chat_admission_enabled: Annotated[bool, BeforeValidator(_is_not_off)] = Field(
        True,
        alias="HORDE_CHAT_ADMISSION_ENABLED",
        description="`0`, `false`, `no` or `off` refuses new chat requests; what is queued is served to its end.",
    )
    database_pool_size: int = Field(
        4,
        alias="HORDE_DATABASE_POOL_SIZE",
        ge=0,
        le=200,
        description="Connections a process keeps to PostgreSQL; set it to the process's threads. 0: no pool.",
    )
    database_prepared_statements: bool = Field(
        True,
        alias="HORDE_DATABASE_PREPARED_STATEMENTS",
        description="Whether connections keep prepared statements, which spares PostgreSQL half its work. "
        "Set it to false behind a pooler that gives each transaction another connection, such as PgBouncer.",
    )
    database_statement_timeout_seconds: int = Field(
        30,
        alias="HORDE_DATABASE_STATEMENT_TIMEOUT_SECONDS",
        ge=0,
        le=3600,
        description="How long PostgreSQL works on a statement of the API or a periodic task, and lets a transaction of "
        "theirs lie idle, before it ends it; 0 is for ever. Commands of `manage.py` have no such bound. With "
        "`HORDE_DATABASE_PREPARED_STATEMENTS=false` it is not sent: give the role these limits instead.",
    )
    redis_timeout_milliseconds: int = Field(
        50,
        alias="HORDE_REDIS_TIMEOUT_MILLISECONDS",
        ge=5,
        le=5000,
        description="How long a request waits for Redis to connect or answer, in milliseconds.",
    )
    rate_limits_enabled: bool = Field(
        True,
        alias="HORDE_RATE_LIMITS_ENABLED",
        description="Whether callers are held to rate limits. Without Redis nobody is, until it is back.",
    )
    chat_submit_short_rates: Annotated[str, AfterValidator(_require_rates)] = Field(
        "2/second",
        alias="HORDE_CHAT_REQUEST_2SEC_LIMIT_PER_IP",
        description="How many chat requests one address may submit in the short run, as `<count>/<period>`; several "
        "limits, `5/second;300/minute`, hold all at once. Periods are `second`, `minute`, `hour` and `day`. "
        "An IPv6 address counts as its /64 network.",
    )
    chat_submit_long_rates: Annotated[str, AfterValidator(_require_rates)] = Field(
        "90/minute",
        alias="HORDE_CHAT_REQUEST_90MIN_LIMIT_PER_IP",
        description="The same in the long run; both settings hold at once.",
    )
    rate_limits_whitelist: Annotated[str, AfterValidator(_require_networks)] = Field(
        "",
        alias="HORDE_RATE_LIMITS_WHITELIST",
        description="Addresses or networks of services that submit for many people, comma separated. Each address may "
        "submit 10 requests a second and 300 a minute, whatever the settings above say.",
    )
    trusted_proxy_hops: int = Field(
        0,
        alias="HORDE_TRUSTED_PROXY_HOPS",
        ge=0,
        le=10,
        description="How many proxies of your own stand before the API, each adding the address it was called from to "
        "`X-Forwarded-For`. 0: the header is ignored, and the address is the connection's; behind a unix socket, where "
        "a connection has none, all callers then share one.",
    )
    free_output_ceiling: int = Field(
        4096,
        alias="HORDE_TEXT_FREE_OUTPUT_CEILING",
        ge=1,
        le=1_000_000,
        description="The longest output, in tokens, that is queued without holding its kudos first while the fleet is "
        "idle. Above the allowance a requester has to own what the request may cost.",
    )
    free_output_floor: int = Field(
        512,
        alias="HORDE_TEXT_FREE_OUTPUT_FLOOR",
        ge=1,
        le=1_000_000,
        description="What stays free under any load, in tokens, and when no worker can serve a request.",
    )
    free_output_wait_full_seconds: float = Field(
        60,
        alias="HORDE_TEXT_FREE_OUTPUT_WAIT_FULL_SECONDS",
        ge=0,
        le=86_400,
        description="Up to this estimated wait, in seconds, the allowance is the ceiling.",
    )
    free_output_wait_floor_seconds: float = Field(
        300,
        alias="HORDE_TEXT_FREE_OUTPUT_WAIT_FLOOR_SECONDS",
        ge=0,
        le=86_400,
        description="From this estimated wait on, in seconds, the allowance is the floor.",
    )
    upfront_kudos_on_worker_list: Annotated[bool, BeforeValidator(_is_on)] = Field(
        False,
        alias="HORDE_UPFRONT_KUDOS_ON_WORKERLIST",
        description="Whether a request that names its workers always has its kudos held first. `1` means yes.",
    )
    text_model_reference: Annotated[str, AfterValidator(_require_url_or_path)] = Field(
        "",
        alias="HORDE_IMAGE_LLM_REFERENCE",
        description="Where the reference of text models is read from, hourly and in place of the bundled one: an "
        "http(s) URL, or the absolute path of a file that the Celery worker can read. It holds a JSON object of "
        '`"org/name": {"parameters": 8030000000, "nsfw": false}`, at most 16 MiB. While it cannot be read, the last '
        "copy counts, and until there is one the bundled reference. Empty: the bundled one alone.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", alias="HORDE_LOG_LEVEL", description="The least severe level that is logged."
    )
    log_format: Literal["text", "json"] = Field(
        "text",
        alias="HORDE_LOG_FORMAT",
        description="How a record is written to standard error: a line of text, or a line of JSON; "
        "[operations](operations.md#logs) shows both.",
    )
    instance_id: str = Field(
        "",
        alias="HORDE_INSTANCE_ID",
        description="Shown by `/healthz/live`, so that whoever starts a process can tell it from another on its port.",
    )
    metrics_folder: str = Field(
        "",
        alias="PROMETHEUS_MULTIPROC_DIR",
        description="A folder in which the processes of a machine add up their metrics. Empty: each shows its own.",
    )

    @model_validator(mode="after")
    def _require_allowance_curve(self) -> Self:
        """Refuse a curve that rises or has no slope (ALW-66)."""
        if self.free_output_floor > self.free_output_ceiling:
            message = "HORDE_TEXT_FREE_OUTPUT_FLOOR has to be at most HORDE_TEXT_FREE_OUTPUT_CEILING"
            raise ValueError(message)
        if self.free_output_wait_floor_seconds <= self.free_output_wait_full_seconds:
            message = (
                "HORDE_TEXT_FREE_OUTPUT_WAIT_FLOOR_SECONDS has to be above HORDE_TEXT_FREE_OUTPUT_WAIT_FULL_SECONDS"
            )
            raise ValueError(message)
        return self

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings.

        Raises:
            BadEnvironment: a variable is missing or cannot be used; the message has one line for each.
        """
        try:
            return cls.model_validate({name: value for name, value in environ.items() if value != ""})
        except ValidationError as error:
            lines = [
                ": ".join([*map(str, fault["loc"]), f"{fault['msg'].removeprefix('Value error, ')}."])
                for fault in error.errors(include_url=False, include_input=False, include_context=False)
            ]
            raise BadEnvironment(
                "hordechat cannot start with this environment:\n  "
                + "\n  ".join(lines)
                + "\ndocs/settings.md describes every variable; script/server sets them for a local site."
            ) from None

    @property
    def peppers(self) -> list[tuple[str, str]]:
        """The API key peppers as (id, secret), the one for new keys first."""
        return [(entry.partition(":")[0], entry.partition(":")[2]) for entry in self.api_key_peppers.split(",")]

    def redis_database(self, number: int) -> str:
        """Return the URL of one logical database of the Redis server."""
        parts = urlsplit(self.redis_url)
        if parts.scheme == "unix":
            return f"unix://{parts.netloc}{parts.path}?db={number}"
        return parts._replace(path=f"/{number}").geturl()

    @property
    def chat_submit_rates(self) -> tuple[Rate, ...]:
        """What one address may submit of chat requests, each limit once."""
        return rates.parse(f"{self.chat_submit_short_rates};{self.chat_submit_long_rates}")

    @property
    def whitelisted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The addresses with the rate limits of services."""
        return _networks_of(self.rate_limits_whitelist)

    @property
    def broker_url(self) -> str:
        """Where Celery's messages go, in kombu's spelling."""
        parts = urlsplit(self.redis_url)
        if parts.scheme == "unix":
            return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={REDIS_BROKER_DATABASE}"
        return self.redis_database(REDIS_BROKER_DATABASE)

    @property
    def database(self) -> dict[str, str]:
        """The parts of `DATABASE_URL` under Django's names."""
        parts = urlsplit(self.database_url)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return {
            "NAME": unquote(parts.path.strip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": query.get("host", parts.hostname or ""),
            "PORT": query.get("port", str(parts.port or "")),
        }

    @property
    def database_options(self) -> dict[str, str]:
        """Further options of `DATABASE_URL` for libpq, such as `sslmode`."""
        query = parse_qs(urlsplit(self.database_url).query)
        return {name: values[-1] for name, values in query.items() if name not in {"host", "port"}}


def load() -> Environment:
    """Read this process's environment; called once, by `hordechat.settings.django`."""
    return Environment.load(os.environ)
