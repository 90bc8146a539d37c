"""Each record is one line that names its request, whatever a client put into it."""

import logging

import pytest

from hordechat.infra.logging import LINE, LineFormatter, RequestIdFilter, TracebackFilter, request_id


def line_of(message: str, *args: object, exc_info: BaseException | None = None) -> str:
    details = None if exc_info is None else (type(exc_info), exc_info, exc_info.__traceback__)
    record = logging.LogRecord("hordechat.test", logging.WARNING, __file__, 1, message, args, details)
    RequestIdFilter().filter(record)
    return LineFormatter(LINE).format(record)


def test_a_record_names_the_request_it_was_written_for() -> None:
    token = request_id.set("abc")
    try:
        inside = line_of("hello %s", "there")
    finally:
        request_id.reset(token)

    assert inside.endswith("WARNING [abc] hordechat.test: hello there")
    assert line_of("hello").endswith("WARNING [-] hordechat.test: hello")


@pytest.mark.parametrize("value", ["a\nb", "a\r\nb", "\n2026-01-01 ERROR [-] root: forged"])
def test_a_value_cannot_begin_a_line_of_its_own(value: str) -> None:
    assert len(line_of("refused %s", value).splitlines()) == 1


def test_a_traceback_follows_its_line() -> None:
    lines = line_of("failed", exc_info=KeyError("ours")).splitlines()

    assert lines[0].endswith(": failed")
    assert lines[-1] == "KeyError: 'ours'"


def test_djangos_line_about_an_answer_is_dropped_and_its_tracebacks_are_kept() -> None:
    about_an_answer = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "Service Unavailable", (), None)
    error = KeyError("ours")
    uncaught = logging.LogRecord("django.request", logging.ERROR, __file__, 1, "failed", (), (KeyError, error, None))

    assert not TracebackFilter().filter(about_an_answer)
    assert TracebackFilter().filter(uncaught)
