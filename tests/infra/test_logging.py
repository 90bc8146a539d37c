"""Each record is one line that names its request, in text or in JSON, whatever a client put into it."""

import json
import logging
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from enum import IntEnum, StrEnum
from io import BytesIO, TextIOWrapper
from typing import TypeAlias

import orjson
import pytest
from django.db import IntegrityError, transaction

from hordechat.infra.logging import (
    MAX_EXCEPTION_CHARACTERS,
    MAX_VALUE_CHARACTERS,
    JsonFormatter,
    TextFormatter,
    TracebackFilter,
    request_id,
)
from requests_app.models import PromptFilter
from tests.spec.rows import PROJECT

Members: TypeAlias = dict[str, object]
SAID = "whispered\nconfidentially"


class Log:
    """A logger whose handler writes into memory, as standard error would."""

    def __init__(self, formatter: logging.Formatter, *, encoding: str = "utf-8", name: str = "hordechat.test") -> None:
        self._written = BytesIO()
        handler = logging.StreamHandler(TextIOWrapper(self._written, encoding, "backslashreplace", write_through=True))
        handler.setFormatter(formatter)
        self.logger = logging.Logger(name)  # noqa: LOG001 - of its own, outside of the tree other tests see
        self.logger.addHandler(handler)

    def text(self) -> str:
        """Return what was written."""
        return self._written.getvalue().decode("utf-8")

    def record(self) -> Members:
        """Return the one record that was written, as a strict reader of JSON takes it."""
        [line] = self._written.getvalue().splitlines(keepends=True)
        assert line.endswith(b"\n")
        assert len(line.decode().splitlines()) == 1
        members: Members = orjson.loads(line)
        return members


@pytest.fixture
def text() -> Log:
    return Log(TextFormatter())


@pytest.fixture
def as_json() -> Log:
    return Log(JsonFormatter())


@pytest.fixture(params=[TextFormatter, JsonFormatter])
def either(request: pytest.FixtureRequest) -> Log:
    formatter: type[logging.Formatter] = request.param
    return Log(formatter())


@pytest.fixture
def inside_a_request() -> Iterator[None]:
    token = request_id.set("abc")
    yield
    request_id.reset(token)


class Color(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("not this one")

    __repr__ = __str__


class TestText:
    """A line holds the time, level, request, logger and message, then the fields."""

    @pytest.mark.usefixtures("inside_a_request")
    def test_names_the_request_it_was_written_for(self, text: Log) -> None:
        text.logger.warning("hello %s", "there")

        assert text.text().endswith("WARNING [abc] hordechat.test: hello there\n")

    def test_says_where_there_is_no_request(self, text: Log) -> None:
        text.logger.info("hello")

        assert text.text().endswith("INFO    [-] hordechat.test: hello\n")

    def test_shows_fields_behind_the_message(self, text: Log) -> None:
        identifier = uuid.UUID(int=17)
        fields = {"generation_id": identifier, "kudos": Decimal("1.20"), "n": 2, "words": 'a "b"', "none": None}

        text.logger.info("stored", extra={**fields, "empty": "", "ids": [1, 2], "is_late": False, "like": "a=b"})

        assert text.text().endswith(
            f': stored generation_id={identifier} kudos=1.20 n=2 words="a \\"b\\"" none=null empty="" ids=[1,2] '
            'is_late=false like="a=b"\n'
        )

    @pytest.mark.parametrize(
        "value",
        [
            "a\nb",
            "a\r\nb",
            "a\vb\fc\x1cd\x85e\u2028f\u2029g",
            "\n2026-01-01 00:00:00,000 ERROR   [-] root: forged",
            "\x1b[2K\x1b[1Aerased",
            "\u202eturned around",
            "half a \ud800",
        ],
    )
    def test_escapes_what_does_not_print(self, text: Log, value: str) -> None:
        text.logger.warning("refused %s", value, extra={"value": value, "values": [value], "of": {value: value}})

        [line] = text.text().splitlines()
        assert line.isprintable()

    def test_lets_a_traceback_follow_on_indented_lines(self, text: Log) -> None:
        try:
            int("ours")
        except ValueError:
            text.logger.exception("failed", extra={"n": 1})

        first, *others = text.text().splitlines()
        assert first.endswith(": failed n=1")
        assert (others[0], others[-1]) == (
            "  Traceback (most recent call last):",
            "  ValueError: invalid literal for int() with base 10: 'ours'",
        )

    def test_lets_no_exception_begin_a_line(self, text: Log) -> None:
        text.logger.error("failed", exc_info=ValueError("a\n2026-01-01 ERROR [-] root: forged\r\x1b[1A"))

        _, *others = text.text().splitlines()
        assert others == ["  ValueError: a", "  2026-01-01 ERROR [-] root: forged", "  \\x1b[1A"]


class TestJson:
    """A line is one object with the standard members and the fields."""

    @pytest.mark.usefixtures("inside_a_request")
    def test_has_the_standard_members_and_the_fields(self, as_json: Log) -> None:
        as_json.logger.warning("hello %s", "there", extra={"generation_id": uuid.UUID(int=17), "n": 2})

        record = as_json.record()
        timestamp = record.pop("timestamp")
        assert record == {
            "level": "WARNING",
            "logger": "hordechat.test",
            "request_id": "abc",
            "message": "hello there",
            "generation_id": str(uuid.UUID(int=17)),
            "n": 2,
        }
        assert isinstance(timestamp, str)
        assert timestamp.endswith("+00:00")

    def test_holds_a_traceback(self, as_json: Log) -> None:
        try:
            int("ours")
        except ValueError:
            as_json.logger.exception("failed")

        exception = str(as_json.record()["exception"])
        assert exception.startswith("Traceback (most recent call last):\n  File ")
        assert exception.endswith("\nValueError: invalid literal for int() with base 10: 'ours'")

    def test_holds_the_stack_that_was_asked_for(self, as_json: Log) -> None:
        as_json.logger.error("here", stack_info=True)

        assert str(as_json.record()["exception"]).startswith("Stack (most recent call last):\n  File ")

    def test_says_that_there_is_no_request(self, as_json: Log) -> None:
        as_json.logger.info("hello")

        assert (as_json.record()["request_id"], "exception" in as_json.record()) == ("-", False)

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (None, None),
            (True, True),
            (17, 17),
            (2**53, 2**53),
            (2**53 + 1, str(2**53 + 1)),
            (-(2**64), str(-(2**64))),
            pytest.param(10**5000, "<int without text: ValueError>", id="5,001 digits"),
            (1.5, 1.5),
            (float("nan"), "nan"),
            (float("-inf"), "-inf"),
            (Decimal("1.20"), "1.20"),
            (uuid.UUID(int=17), str(uuid.UUID(int=17))),
            (b"caf\xc3\xa9 \xff\0", "café \\xff\0"),
            ("half a \ud800", "half a \\ud800"),
            ("one\ntwo\u2028three", "one\ntwo\u2028three"),
            (Color.RED, "red"),
            (Level.HIGH, 3),
            (ValueError("why"), "why"),
            (Unspeakable(), "<Unspeakable without text: RuntimeError>"),
            ([1, ("two", {3})], [1, ["two", [3]]]),
            ({"a": {1: float("nan")}, "\ud800": b"b"}, {"a": {"1": "nan"}, "\\ud800": "b"}),
            ([[[[1]]]], [[["[1]"]]]),
        ],
    )
    def test_shows_any_value(self, as_json: Log, value: object, shown: object) -> None:
        as_json.logger.info("hello", extra={"value": value})

        assert as_json.record()["value"] == shown

    def test_shows_what_holds_itself(self, as_json: Log) -> None:
        endless: list[object] = []
        endless.append(endless)

        as_json.logger.info("hello", extra={"value": endless})

        assert as_json.record()["value"] == [[["[[...]]"]]]

    def test_is_read_whatever_the_encoding_of_standard_error(self) -> None:
        narrow = Log(JsonFormatter(), encoding="ascii")

        narrow.logger.info("café %s", "☕", extra={"value": "naïve"})

        assert (narrow.record()["message"], narrow.record()["value"]) == ("café ☕", "naïve")

    @pytest.mark.usefixtures("inside_a_request")
    def test_lets_no_field_take_a_standard_members_place(self, as_json: Log) -> None:
        fields = dict.fromkeys(("timestamp", "level", "logger", "request_id", "exception"), "forged")

        as_json.logger.info("hello", extra=fields)

        record = as_json.record()
        assert (record["level"], record["logger"], record["request_id"]) == ("INFO", "hordechat.test", "abc")
        assert "forged" not in {record["timestamp"], record.get("exception")}
        assert {name for name, value in record.items() if value == "forged"} == {f"extra_{name}" for name in fields}


class TestEither:
    """Both formats write a record that is no longer than it has to be, and write it in any case."""

    @pytest.mark.parametrize("value", ["x" * 100_000, b"x" * 100_000, ["x"] * 100_000, {"x": "x" * 100_000}])
    def test_bounds_a_value(self, either: Log, value: object) -> None:
        either.logger.info("hello", extra={"value": value})

        assert MAX_VALUE_CHARACTERS < len(either.text()) < 2 * MAX_VALUE_CHARACTERS

    def test_keeps_both_ends_of_a_long_message_and_exception(self, either: Log) -> None:
        error = ValueError("x" * 1_000_000 + " the end")

        either.logger.error("begun %s ended", "x" * 100_000, exc_info=error)

        written = either.text()
        assert len(written) < MAX_VALUE_CHARACTERS + MAX_EXCEPTION_CHARACTERS + 1000
        assert all(part in written for part in ("begun x", "x ended", "ValueError: x", "x the end"))

    @pytest.mark.parametrize("arguments", [("a string",), (), (1, 2), (Unspeakable(),)])
    def test_shows_a_message_that_does_not_fit_its_values(self, either: Log, arguments: tuple[object, ...]) -> None:
        either.logger.info("%d things", *arguments)

        assert "%d things" in either.text()
        assert len(either.text().splitlines()) == 1

    @pytest.mark.parametrize(("name", "field"), [("celery.app.trace", "data"), ("django.request", "request")])
    @pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
    def test_leaves_out_what_others_attach(self, formatter: type[logging.Formatter], name: str, field: str) -> None:
        log, own = Log(formatter(), name=name), Log(formatter())

        for each in (log, own):
            each.logger.info("hello", extra={field: "?apikey=secret", "status": 500})

        assert "500" in log.text()
        assert "secret" not in log.text()
        assert "secret" in own.text()


@pytest.mark.django_db
@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
def test_a_database_error_shows_no_text_of_its_row(formatter: type[logging.Formatter]) -> None:
    log = Log(formatter())

    filters = [PromptFilter(regex=SAID, filter_type=99)]
    with pytest.raises(IntegrityError) as failure, transaction.atomic():
        PromptFilter.objects.bulk_create(filters)
    error = RuntimeError("the filter was not kept")
    error.__cause__ = failure.value
    log.logger.error("something failed", exc_info=error)

    assert "prompt_filters_type_known" in log.text()
    assert SAID in str(failure.value)
    assert not [word for word in SAID.split() if word in log.text()]


def test_djangos_line_about_an_answer_is_dropped_and_its_tracebacks_are_kept() -> None:
    about_an_answer = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "Service Unavailable", (), None)
    error = KeyError("ours")
    uncaught = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "failed", (), (KeyError, error, None))

    assert not TracebackFilter().filter(about_an_answer)
    assert TracebackFilter().filter(uncaught)


COMMANDS = """
import logging, warnings
logger = logging.getLogger("hordechat.test")
logger.info("hello", extra={"n": 1})
try:
    raise KeyError("ours\\n")
except KeyError:
    logger.exception("failed")
for name in ("_granian", "granian.access", "celery.worker.strategy"):
    logging.getLogger(name).warning("theirs")
warnings.warn("old")
"""


def run(log_format: str) -> list[str]:
    """Return the lines that a process with the setting writes to standard error."""
    answer = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v0", "-c", COMMANDS],
        cwd=PROJECT,
        env={**os.environ, "HORDE_LOG_FORMAT": log_format, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stderr.splitlines()


def test_a_process_writes_json_where_that_is_set() -> None:
    *records, warning = [json.loads(line) for line in run("json")]

    assert [(each["level"], each["logger"], each["message"]) for each in records] == [
        ("INFO", "hordechat.test", "hello"),
        ("ERROR", "hordechat.test", "failed"),
        ("WARNING", "_granian", "theirs"),
        ("WARNING", "granian.access", "theirs"),
        ("WARNING", "celery.worker.strategy", "theirs"),
    ]
    assert (warning["logger"], "UserWarning: old\n" in warning["message"]) == ("py.warnings", True)
    assert (records[0]["n"], records[0]["request_id"]) == (1, "-")
    assert records[1]["exception"].endswith("KeyError: 'ours\\n'")


def test_a_process_writes_text_where_nothing_is_set() -> None:
    lines = run("")

    assert lines[0].endswith("INFO    [-] hordechat.test: hello n=1")
    assert sum(not line.startswith("  ") for line in lines) == 6
