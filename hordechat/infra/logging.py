"""Logging for every process: one line a record on standard error, each with the id of the request it belongs to."""

import logging
import logging.config
from collections.abc import Mapping
from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the HTTP request or Celery task this code runs for; `-` outside of both."""

LINE = "%(asctime)s %(levelname)-7s [%(request_id)s] %(name)s: %(message)s"


class RequestIdFilter(logging.Filter):
    """Give each record the id of the request it was written for."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add `request_id`; always true."""
        record.request_id = request_id.get()
        return True


class TracebackFilter(logging.Filter):
    """Drop Django's line about each 5xx answer: who made the answer said why, under the request's id."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep records of an exception, which Django writes for what nobody caught."""
        return record.exc_info is not None


class LineFormatter(logging.Formatter):
    """Keep each message on one line, so that nothing a client sent can look like a record of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Return the line; a traceback follows on further lines."""
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


def configure(options: Mapping[str, str]) -> None:
    """Set logging up; Django calls this with its `LOGGING` setting, which holds the level alone."""
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "filters": {"request_id": {"()": RequestIdFilter}, "traceback": {"()": TracebackFilter}},
            "formatters": {"line": {"()": LineFormatter, "fmt": LINE}},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "filters": ["request_id"], "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": options["level"]},
            # Expected refusals are counted, not logged (Django would log each 4xx as a warning).
            "loggers": {
                "django.request": {"level": "ERROR", "filters": ["traceback"]},
                "django.security": {"level": "CRITICAL"},
                "httpx2": {"level": "WARNING"},
            },
        }
    )
