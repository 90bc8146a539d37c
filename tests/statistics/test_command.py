"""`manage.py statistics` shows the figures to a person or as one line of JSON."""

import io
import json
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from requests_app.services import statistics
from tests.statistics.generations import MODEL, NOW, finish

pytestmark = pytest.mark.django_db
SPANS = ["minute", "hour", "day", "month", "total"]
NOTHING = {
    "replies": 0, "cancelled": 0, "faulted": 0, "requested_tokens": 0, "written_tokens": 0, "seconds": 0.0,
    "tokens_per_second": 0.0,
}  # fmt: skip


def run(*arguments: str) -> str:
    output = io.StringIO()
    with time_machine.travel(NOW, tick=False):
        call_command("statistics", *arguments, stdout=output)
    return output.getvalue()


def test_prints_zeros_before_anything_ended() -> None:
    figures = json.loads(run("--json"))

    assert figures == {family: {span: NOTHING | {"models": {}} for span in SPANS} for family in ("chat", "text")}


def test_prints_one_line_of_json_by_family_span_and_model() -> None:
    finish(2)
    finish(is_chat=True, model="invented")
    finish(is_chat=True, model="invented", outcome="faulted", written_tokens=0)
    finish(is_chat=True, outcome="cancelled", written_tokens=0)
    statistics.roll_up_all(now=NOW)

    output = run("--json")

    figures: dict[str, Any] = json.loads(output)
    assert output.count("\n") == 1
    two = {
        "replies": 2, "cancelled": 0, "faulted": 0, "requested_tokens": 128, "written_tokens": 40, "seconds": 3.0,
        "tokens_per_second": 13.3,
    }  # fmt: skip
    one = {"replies": 1, "requested_tokens": 64, "written_tokens": 20, "seconds": 1.5, "tokens_per_second": 13.3}
    for span in ("day", "month", "total"):
        assert figures["text"][span] == two | {"models": {MODEL: two}}
        assert figures["chat"][span] == NOTHING | one | {
            "cancelled": 1,
            "faulted": 1,
            "models": {MODEL: NOTHING | {"cancelled": 1}, "other": NOTHING | one | {"faulted": 1}},
        }
    assert figures["text"]["hour"] == NOTHING | {"models": {}}


def test_prints_a_table_a_family_to_a_person() -> None:
    finish(2)
    statistics.roll_up_all(now=NOW)

    lines = [line.split() for line in run().splitlines()]

    assert lines[0] == ["chat", "replies", "cancelled", "faulted", "tokens", "asked", "tokens", "written", "tokens/s"]
    assert [line[0] for line in lines] == [
        "chat", *SPANS, "text", "minute", "hour", "day", MODEL, "month", MODEL, "total", MODEL,
    ]  # fmt: skip
    assert lines[-1] == [MODEL, "2", "0", "0", "128", "40", "13.3"]


def test_takes_nothing_else() -> None:
    with pytest.raises(CommandError, match="unrecognized arguments: day"):
        run("day")
