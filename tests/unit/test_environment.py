"""A process reads its settings once: what it takes, what it makes of it, and how it stops over what it cannot use."""

import os
import subprocess
import sys

import pytest
from kombu.connection import Connection

from hordechat.settings import document
from hordechat.settings.env import BadEnvironment, Environment
from tests.spec.rows import PROJECT

SECRET = "correct-horse-battery-staple-0123456789"
PEPPERS = f"new:{SECRET}a,old:{SECRET}b"
REQUIRED = {
    "DATABASE_URL": "postgresql://horde:pass@db.example:5433/horde",
    "REDIS_URL": "redis://cache.example:6380",
    "HORDE_SECRET_KEY": SECRET,
    "HORDE_API_KEY_PEPPERS": PEPPERS,
}
HEAD = "hordechat cannot start with this environment:\n"
FOOT = "\ndocs/settings.md describes every variable; script/server sets them for a local site."


def load(**changes: str) -> Environment:
    return Environment.load({**REQUIRED, **changes})


def check(environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_process_with_the_required_variables_starts() -> None:
    answer = check(REQUIRED)

    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_process_without_any_stops_and_names_each() -> None:
    answer = check({})

    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr == HEAD + "".join(f"  {name}: Field required.\n" for name in REQUIRED) + FOOT[1:] + "\n"


def test_a_process_with_bad_values_stops_and_shows_none_of_them() -> None:
    answer = check(
        {
            "DATABASE_URL": "postgresql://horde:hunter2/hunter3@db:5432/horde",
            "REDIS_URL": "redis://:hunter4@cache:hunter5",
            "HORDE_SECRET_KEY": "hunter6",
            "HORDE_API_KEY_PEPPERS": f"hunter7:{SECRET},hunter8",
            "HORDE_PORT": "hunter9",
        }
    )

    assert answer.returncode == 1
    assert [line.split(":")[0].strip() for line in answer.stderr.splitlines()[1:-1]] == [*REQUIRED, "HORDE_PORT"]
    assert "hunter" not in answer.stderr
    assert SECRET not in answer.stderr


@pytest.mark.parametrize("name", REQUIRED)
def test_an_empty_variable_counts_as_absent(name: str) -> None:
    with pytest.raises(BadEnvironment) as stopped:
        load(**{name: ""})

    assert stopped.value.code == f"{HEAD}  {name}: Field required.{FOOT}"


POSTGRESQL = "has to look like postgresql://user:password@host:5432/database, special characters as %xx."
REDIS = "has to look like redis://host:6379 or unix:///path/to/socket."
SECRETS = "has to look like id:secret[,id:secret…], each secret at least 32 characters."


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("DATABASE_URL", "mysql://horde@db/horde", POSTGRESQL),
        ("DATABASE_URL", "postgresql://horde@db", POSTGRESQL),
        ("DATABASE_URL", "postgresql://horde@db:port/horde", POSTGRESQL),
        ("DATABASE_URL", "postgresql://[::1/horde", POSTGRESQL),
        ("DATABASE_URL", "horde", POSTGRESQL),
        ("REDIS_URL", "localhost:6379", REDIS),
        ("REDIS_URL", "redis:", REDIS),
        ("REDIS_URL", "redis://cache:port", REDIS),
        ("REDIS_URL", "unix:", REDIS),
        ("HORDE_SECRET_KEY", "x" * 31, "String should have at least 32 characters."),
        ("HORDE_API_KEY_PEPPERS", SECRET, SECRETS),
        ("HORDE_API_KEY_PEPPERS", "a:short", SECRETS),
        ("HORDE_API_KEY_PEPPERS", f"a:{SECRET},", SECRETS),
        ("HORDE_API_KEY_PEPPERS", f"a:{SECRET},a:{SECRET}", "names two secrets by the same id."),
        ("HORDE_URL", "horde.example", "String should match pattern '^https?://'."),
        ("HORDE_PORT", "0", "Input should be greater than or equal to 1."),
        ("HORDE_PORT", "65536", "Input should be less than or equal to 65535."),
        ("HORDE_DATABASE_POOL_SIZE", "-1", "Input should be greater than or equal to 0."),
        ("HORDE_REDIS_TIMEOUT_MILLISECONDS", "4", "Input should be greater than or equal to 5."),
        ("HORDE_LOG_LEVEL", "info", "Input should be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'."),
        ("HORDE_LOG_FORMAT", "xml", "Input should be 'text' or 'json'."),
    ],
)
def test_a_bad_value_is_refused_under_its_name(name: str, value: str, complaint: str) -> None:
    with pytest.raises(BadEnvironment) as stopped:
        load(**{name: value})

    assert stopped.value.code == f"{HEAD}  {name}: {complaint}{FOOT}"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"HORDE_TEXT_FREE_OUTPUT_FLOOR": "513", "HORDE_TEXT_FREE_OUTPUT_CEILING": "512"},
            "HORDE_TEXT_FREE_OUTPUT_FLOOR has to be at most HORDE_TEXT_FREE_OUTPUT_CEILING",
        ),
        (
            {"HORDE_TEXT_FREE_OUTPUT_WAIT_FLOOR_SECONDS": "60"},
            "HORDE_TEXT_FREE_OUTPUT_WAIT_FLOOR_SECONDS has to be above HORDE_TEXT_FREE_OUTPUT_WAIT_FULL_SECONDS",
        ),
    ],
)
@pytest.mark.spec("ALW-66")
def test_an_allowance_that_rises_or_has_no_slope_is_refused(changes: dict[str, str], named: str) -> None:
    with pytest.raises(BadEnvironment) as stopped:
        load(**changes)

    assert stopped.value.code == f"{HEAD}  {named}.{FOOT}"


@pytest.mark.spec("ADM-11", "ADM-01")
@pytest.mark.parametrize(
    ("value", "is_enabled"),
    [("", True), ("1", True), ("anything", True), ("0", False), ("FALSE", False), ("No", False), (" off ", False)],
)
def test_admission_is_open_unless_plainly_closed(value: str, is_enabled: bool) -> None:
    assert load(HORDE_CHAT_ADMISSION_ENABLED=value).chat_admission_enabled is is_enabled


def test_the_other_variables_have_defaults() -> None:
    environment = load()

    assert environment.allowed_hosts == "localhost,127.0.0.1,[::1]"
    assert (environment.url, environment.port) == ("http://localhost:7001", 7001)
    assert (environment.database_pool_size, environment.redis_timeout_milliseconds) == (4, 50)
    assert (environment.log_level, environment.instance_id, environment.metrics_folder) == ("INFO", "", "")
    assert environment.node_name


def test_the_first_pepper_signs_new_keys() -> None:
    assert load().peppers == [("new", f"{SECRET}a"), ("old", f"{SECRET}b")]


@pytest.mark.parametrize(
    ("url", "cache", "broker", "broker_parts"),
    [
        (
            "redis://:p%40ss@cache:6380",
            "redis://:p%40ss@cache:6380/0",
            "redis://:p%40ss@cache:6380/1",
            ("cache", 6380, "p@ss", "1"),
        ),
        (
            "rediss://cache?ssl_cert_reqs=none",
            "rediss://cache/0?ssl_cert_reqs=none",
            "rediss://cache/1?ssl_cert_reqs=none",
            ("cache", 6379, None, "1"),
        ),
        (
            "unix:///run/redis.sock",
            "unix:///run/redis.sock?db=0",
            "redis+socket:///run/redis.sock?virtual_host=1",
            ("socket:///run/redis.sock?virtual_host=1", 6379, None, "/"),
        ),
        (
            "unix://:pass@/run/redis.sock",
            "unix://:pass@/run/redis.sock?db=0",
            "redis+socket://:pass@/run/redis.sock?virtual_host=1",
            ("socket://:pass@/run/redis.sock?virtual_host=1", 6379, None, "/"),
        ),
    ],
)
def test_redis_is_reached_by_each_kind_of_address(
    url: str, cache: str, broker: str, broker_parts: tuple[object, ...]
) -> None:
    environment = load(REDIS_URL=url)

    with Connection(environment.broker_url) as connection:  # type: ignore[no-untyped-call] # kombu has no annotations
        understood = (connection.hostname, connection.port or 6379, connection.password, connection.virtual_host)

    assert (environment.redis_database(0), environment.broker_url) == (cache, broker)
    assert understood == broker_parts


@pytest.mark.parametrize(
    ("url", "parts", "options"),
    [
        (
            "postgresql://horde:p%40ss%2F@db.example:5433/horde",
            {"NAME": "horde", "USER": "horde", "PASSWORD": "p@ss/", "HOST": "db.example", "PORT": "5433"},
            {},
        ),
        (
            "postgres://horde@/horde?host=/run/postgresql&port=5434",
            {"NAME": "horde", "USER": "horde", "PASSWORD": "", "HOST": "/run/postgresql", "PORT": "5434"},
            {},
        ),
        (
            "postgresql:///horde",
            {"NAME": "horde", "USER": "", "PASSWORD": "", "HOST": "", "PORT": ""},
            {},
        ),
        (
            "postgresql://db/horde?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            {"NAME": "horde", "USER": "", "PASSWORD": "", "HOST": "db", "PORT": ""},
            {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem"},
        ),
    ],
)
def test_the_database_is_reached_as_its_address_says(url: str, parts: dict[str, str], options: dict[str, str]) -> None:
    environment = load(DATABASE_URL=url)

    assert (environment.database, environment.database_options) == (parts, options)


def test_the_page_of_settings_is_up_to_date() -> None:
    assert document.PAGE.path.read_text(encoding="utf-8") == document.render()


def test_the_page_names_every_variable() -> None:
    page = document.PAGE.path.read_text(encoding="utf-8")

    assert [field.alias for field in Environment.model_fields.values() if f"| `{field.alias}` |" not in page] == []


def test_every_variable_the_settings_describe_has_a_sentence() -> None:
    fields = Environment.model_fields.values()

    assert [field.alias for field in fields if not (field.description or "").rstrip("`").endswith(".")] == []


def test_the_command_checks_the_page() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "hordechat.settings.document", "--check"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (answer.returncode, answer.stderr) == (0, "")
