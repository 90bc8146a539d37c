"""Logging for every process: one record after another on standard error, each with the id of what it was written for.

`HORDE_LOG_FORMAT` chooses between a line of text for people and a line of strict JSON for programs. Both show a
record's own fields, which its caller passes as `extra`. Values are made printable and bounded here, so callers pass
them as they have them; that no secret and no text of a conversation is among them is theirs to see to.

The formatters are our own: python-json-logger would spare the lines that name the members of the JSON, and bounds,
values that are no JSON and the line of text would still be ours.
"""

import json
import logging
import logging.config
import math
import re
import traceback
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TypeAlias

import psycopg

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the HTTP request or Celery task this code runs for; `-` outside of both."""

MAX_VALUE_CHARACTERS = 2_000
"""Of a message and of each field; of what is longer the middle is left out."""
MAX_EXCEPTION_CHARACTERS = 20_000
MAX_DEPTH = 3
"""Levels of lists and objects in a field; what lies deeper is shown as text."""
MAX_EXACT_INTEGER = 2**53
"""Larger ones are shown as text: many a reader of JSON would round them."""

STANDARD_MEMBERS = ("timestamp", "level", "logger", "request_id", "message", "exception")
RECORD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
FOREIGN_FIELDS = {"celery": "data", "django": "request"}
"""What these pass as `extra` and is not shown: the message's values once more, and a request with its whole query."""

PLAIN = re.compile(r'[^\s"=\\]+')

Shown: TypeAlias = str | int | float | bool | list["Shown"] | dict[str, "Shown"] | None
"""A value as both formats can show it."""


class TracebackFilter(logging.Filter):
    """Drop Django's line about each 5xx answer: who made the answer said why, under the request's id."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep records of an exception, which Django writes for what nobody caught."""
        return record.exc_info is not None


class TextFormatter(logging.Formatter):
    """Write a record as a line of text, its fields behind the message as ` key=value`.

    Nothing a client sent can look like a record of its own: line breaks are escaped, as is all else that does not
    print, and a traceback follows on lines that are indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and after an exception its traceback."""
        head = f"{self.formatTime(record)} {record.levelname:<7} [{request_id.get()}] {record.name}:"
        fields = [f"{name}={_quoted(value)}" for name, value in _fields_of(record)]
        line = " ".join([head, _message_of(record), *fields])
        return "\n  ".join(_printable(each) for each in [line, *_exception_of(record).splitlines()])


class JsonFormatter(logging.Formatter):
    """Write a record as a line of JSON: an object of the standard members, then the record's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        exception = _exception_of(record)
        members: dict[str, Shown] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "request_id": request_id.get(),
            "message": _message_of(record),
            **({"exception": exception} if exception else {}),
            **dict(_fields_of(record)),
        }
        # In ASCII: standard error may have any encoding, and then escapes what it lacks in a way JSON does not know.
        return json.dumps(members, ensure_ascii=True, allow_nan=False)


FORMATTERS = {"text": TextFormatter, "json": JsonFormatter}


def configure(options: Mapping[str, str]) -> None:
    """Set logging up; Django calls this with its `LOGGING` setting, which holds the level and the format alone."""
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"traceback": {"()": TracebackFilter}},
            "formatters": {"chosen": {"()": FORMATTERS[options["format"]]}},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "chosen"}},
            "root": {"handlers": ["stderr"], "level": options["level"]},
            "loggers": {
                # Expected refusals are counted, not logged (Django would log each 4xx as a warning).
                "django.request": {"level": "ERROR", "filters": ["traceback"]},
                "django.security": {"level": "CRITICAL"},
                "httpx2": {"level": "WARNING"},
                # granian set these up before it loaded the application; their levels stay what its options say.
                "_granian": {"handlers": [], "propagate": True},
                "granian.access": {"handlers": [], "propagate": True},
            },
        }
    )
    # Or each would be lines of its own on standard error.
    logging.captureWarnings(capture=True)


def _message_of(record: logging.LogRecord) -> str:
    try:
        return _text_of(record.getMessage())
    except Exception:  # noqa: BLE001 - a message that does not fit its values, or a value's own code: still a record
        return f"{_text_of(record.msg)} % {_text_of(record.args)}"


def _exception_of(record: logging.LogRecord) -> str:
    """Return the traceback, and the stack when its caller asked for it; empty without either."""
    parts = [record.exc_text or "", record.stack_info or ""]
    if record.exc_info and record.exc_info[1] is not None:
        text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        parts[0] = _without_rows(text, record.exc_info[1])
    return _text_of("\n".join(filter(None, parts)), most_characters=MAX_EXCEPTION_CHARACTERS)


def _without_rows(text: str, error: BaseException | None) -> str:
    """Leave out what PostgreSQL quotes of a row with an error: it may be a conversation."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, psycopg.Error):
            for quoted in filter(None, (error.diag.message_detail, error.diag.context)):
                text = text.replace(quoted, "(left out)")
        error = error.__cause__ or error.__context__
    return text


def _fields_of(record: logging.LogRecord) -> Iterator[tuple[str, Shown]]:
    """Return what the caller passed as `extra`; a field named like a standard member is shown under another name."""
    foreign = FOREIGN_FIELDS.get(record.name.partition(".")[0])
    for name, value in vars(record).items():
        if name not in RECORD_ATTRIBUTES and name != foreign:
            yield _text_of(f"extra_{name}" if name in STANDARD_MEMBERS else name), _bounded(_shown(value))


def _shown(value: object, *, depth: int = MAX_DEPTH) -> Shown:
    """Return the value if JSON has its like, and else its text."""
    match value:
        case None | bool():
            return value
        case int() if abs(value) <= MAX_EXACT_INTEGER:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case list() | tuple() | set() | frozenset() if depth:
            return [_shown(each, depth=depth - 1) for each in value]
        case dict() if depth:
            return {_text_of(name): _shown(each, depth=depth - 1) for name, each in value.items()}
        case _:
            return _text_of(value)


def _bounded(shown: Shown) -> Shown:
    """Return a list or an object that would be too long as text of the bounded length."""
    if isinstance(shown, (list, dict)) and len(text := json.dumps(shown, ensure_ascii=False)) > MAX_VALUE_CHARACTERS:
        return _text_of(text)
    return shown


def _text_of(value: object, *, most_characters: int = MAX_VALUE_CHARACTERS) -> str:
    """Return the value's text, bounded and without what UTF-8 cannot say."""
    try:
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    except Exception as error:  # noqa: BLE001 - whatever a value's own code raises, the record is written
        text = f"<{type(value).__name__} without text: {type(error).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= most_characters:
        return text
    half = (most_characters - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def _quoted(value: Shown) -> str:
    """Return the value as it stands in a line of text: JSON, but words without quotes."""
    if isinstance(value, str) and PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _printable(text: str) -> str:
    """Escape what does not print: line breaks of all kinds, control characters, marks that turn the line around."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
