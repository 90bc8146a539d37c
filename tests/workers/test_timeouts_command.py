"""Operators time out unwelcome addresses with `manage.py timeouts`."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from hordechat.infra import address_timeouts, redis

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def patient_redis(settings: Settings) -> Iterator[None]:
    settings.HORDE = settings.HORDE.model_copy(update={"redis_timeout_milliseconds": 5000})
    redis._client.cache_clear()
    kept = redis.address_timeouts()
    kept.flushdb()
    with time_machine.travel(NOW, tick=False):
        yield
    kept.flushdb()
    redis._client.cache_clear()


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("timeouts", *arguments, stdout=output)
    return output.getvalue()


def listed() -> object:
    output = run("list", "--json")
    assert output.count("\n") == 1
    return json.loads(output)


def test_add_times_out_from_now_on_and_may_be_repeated() -> None:
    first = run("add", "198.51.100.7", "--hours", "720")
    second = run("add", "198.51.100.7", "--hours", "1")

    assert first == "198.51.100.7 is timed out until 2026-03-31 12:00:00 UTC.\n"
    assert second == "198.51.100.7 is timed out until 2026-03-01 13:00:00 UTC.\n"
    assert address_timeouts.find_seconds_left("198.51.100.7", now=NOW) == 3600
    assert listed() == {
        "timeouts": [{"network": "198.51.100.7", "ends_at": "2026-03-01T13:00:00+00:00", "seconds_left": 3600}]
    }


def test_add_says_which_network_it_took() -> None:
    assert run("add", "2001:db8::1", "--hours", "2").startswith("2001:db8::/64 is timed out until ")
    assert run("add", "198.51.100.7/24", "--hours", "2").startswith("198.51.100.0/24 is timed out until ")


def test_remove_ends_it_and_may_be_repeated() -> None:
    run("add", "198.51.100.0/24", "--hours", "1")

    assert run("remove", "198.51.100.7") == (
        "198.51.100.7 has no time-out of its own; `timeouts list` shows those of wider networks.\n"
    )
    assert address_timeouts.find_seconds_left("198.51.100.7", now=NOW) == 3600
    assert run("remove", "198.51.100.0/24") == "The time-out of 198.51.100.0/24 has ended.\n"
    assert address_timeouts.find_seconds_left("198.51.100.7", now=NOW) is None
    assert run("remove", "198.51.100.0/24").startswith("198.51.100.0/24 has no time-out of its own;")


def test_list_shows_each_and_its_end() -> None:
    assert run("list") == "0 timed out.\n"
    assert listed() == {"timeouts": []}
    run("add", "2001:db8::/48", "--hours", "2")
    run("add", "198.51.100.7", "--hours", "1")

    assert [line.split(maxsplit=1) for line in run("list").splitlines()] == [
        ["2", "timed out."],
        ["198.51.100.7", "until 2026-03-01 13:00:00 UTC"],
        ["2001:db8::/48", "until 2026-03-01 14:00:00 UTC"],
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["add", "198.51.100.7"], "--hours"),
        (["add", "198.51.100.7", "--hours", "0"], "'0' is not a number of hours from 1 to 720"),
        (["add", "198.51.100.7", "--hours", "721"], "'721' is not a number of hours from 1 to 720"),
        (["add", "198.51.100.7", "--hours", "-1"], "--hours"),
        (["add", "198.51.100.7", "--hours", "1.5"], "'1.5' is not a number of hours"),
        (["add", "198.51.100.7", "--hours", "9" * 30], "is not a number of hours"),
        (["add", "localhost", "--hours", "1"], "'localhost' is no address or network such as"),
        (["add", "10.0.0.0/7", "--hours", "1"], "10.0.0.0/7 is too wide"),
        (["remove", "localhost"], "'localhost' is no address or network such as"),
        (["forget", "198.51.100.7"], "invalid choice"),
        ([], "ACTION"),
    ],
)
def test_refuses_with_a_sentence(arguments: list[str], complaint: str) -> None:
    with pytest.raises(CommandError) as refusal:
        run(*arguments)

    assert complaint in str(refusal.value)
    assert listed() == {"timeouts": []}


def test_without_redis_it_says_so(settings: Settings, tmp_path: Path) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"redis_url": f"unix://{tmp_path}/nowhere.sock"})
    redis._client.cache_clear()

    for arguments in (["list"], ["add", "198.51.100.7", "--hours", "1"], ["remove", "198.51.100.7"]):
        with pytest.raises(CommandError, match="Redis, which keeps the time-outs of addresses, did not answer"):
            run(*arguments)
