"""Whoever ends a generation writes one row of it, and nobody else does."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hordechat.infra import clock
from requests_app.models import FinishedGeneration
from requests_app.services import expiry, faults
from tests.horde import MODEL, Answer, Horde, count_rows, one_value
from tests.races import at_once

COLUMNS = ("model", "is_chat", "outcome", "max_length", "written_tokens")


def rows() -> list[tuple[Any, ...]]:
    return list(FinishedGeneration.objects.order_by("id").values_list(*COLUMNS))


def test_a_stored_chat_reply(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    one_value("UPDATE processing_gens SET created = created - interval '1500 ms' RETURNING 1")

    horde.reply(generation_id, message={"role": "assistant", "content": "x" * 123})

    assert rows() == [(MODEL, True, "ok", 64, 31)]
    finished = FinishedGeneration.objects.get()
    ended_at, popped_at = (one_value(f"SELECT {column} FROM processing_gens") for column in ("finished_at", "created"))
    assert finished.finished_at == ended_at
    assert finished.milliseconds == round((ended_at - popped_at) / timedelta(milliseconds=1))


def test_each_stored_reply_of_a_text_request(horde: Horde) -> None:
    horde.queued_text(models=[MODEL], n=2, params={"max_length": 80, "n": 2})
    for generation_id in horde.pop_text(amount=2)[1]["ids"]:
        horde.reply_text(generation_id, "x" * 400)

    assert rows() == [(MODEL, False, "ok", 80, 80)] * 2


def test_a_reply_its_client_no_longer_wanted(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.cancel(request_id)

    assert horde.reply(generation_id)[0] == 200

    assert rows() == [(MODEL, True, "cancelled", 64, 0)]


def test_a_job_given_up_and_the_reply_that_came_after_all(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    horde.fault(generation_id)
    horde.reply(horde.pop()[1]["id"])

    assert [row[2] for row in rows()] == ["faulted", "ok"]


def test_a_lapsed_lease_and_no_late_reply(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    assert faults.abort_lapsed(now=clock.now() + timedelta(seconds=200)) == 1

    assert horde.reply(generation_id)[1]["rc"] == "AbortedGen"
    assert horde.fault(generation_id)[1]["rc"] == "AbortedGen"

    assert rows() == [(MODEL, True, "faulted", 64, 0)]
    finished = FinishedGeneration.objects.get()
    assert finished.milliseconds >= 200_000
    assert finished.finished_at == one_value("SELECT finished_at FROM processing_gens")


def test_no_fake(horde: Horde) -> None:
    horde.queued()
    one_value("UPDATE workers SET paused = true RETURNING 1")
    fakes = [horde.pop()[1]["id"]]
    one_value("UPDATE processing_gens SET fake = true RETURNING 1")

    horde.fault(fakes[0])

    assert rows() == []


@pytest.mark.parametrize("end", [Horde.reply, Horde.fault])
def test_no_clock_that_runs_backwards_stops_one(horde: Horde, end: Callable[[Horde, str], Answer]) -> None:
    _, generation_id = horde.in_flight()
    one_value("UPDATE processing_gens SET created = created + interval '1 hour' RETURNING 1")

    assert end(horde, generation_id)[0] == 200

    assert FinishedGeneration.objects.get().milliseconds == 0


def test_outlives_its_request(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    horde.reply(generation_id)

    expiry.expire_all(now=clock.now() + timedelta(hours=1))

    assert len(rows()) == 1


def test_ends_at_the_same_moment_are_one(committed_horde: Horde) -> None:
    _, generation_id = committed_horde.in_flight()
    late = clock.now() + timedelta(seconds=200)

    at_once(
        *[lambda: committed_horde.reply(generation_id)] * 4,
        *[lambda: committed_horde.fault(generation_id)] * 4,
        lambda: (faults.abort_lapsed(now=late), {}),
    )

    assert count_rows("finished_generations") == {"finished_generations": 1}
