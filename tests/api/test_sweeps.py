"""What beat does about overdue work, one bounded batch a run."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from hordechat.celery import BEAT_SCHEDULE, app
from hordechat.infra import beat_marks, clock, redis
from requests_app import tasks
from requests_app.selectors import readiness
from requests_app.services import expiry, faults
from tests.horde import MODEL, Horde, count_rows, one_value
from tests.tries import counts_of, pause_workers

SCHEDULED = [str(entry["task"]) for entry in BEAT_SCHEDULE.values()]


@pytest.fixture(autouse=True)
def found_tasks() -> None:
    """Let Celery find the tasks of all apps, as its worker does when it starts."""
    app.loader.import_default_modules()


@pytest.mark.spec("LSE-04")
def test_looks_for_lapsed_leases_every_60_seconds() -> None:
    [entry] = [entry for entry in BEAT_SCHEDULE.values() if entry["task"] == "requests_app.tasks.abort_lapsed_leases"]

    assert entry["schedule"] == 60


@pytest.mark.spec("LSE-04")
def test_the_scheduled_task_aborts_a_lapsed_lease(horde: Horde) -> None:
    horde.in_flight()
    one_value("UPDATE processing_gens SET deadline = now() - interval '1 s' RETURNING 1")

    tasks.abort_lapsed_leases()

    assert one_value("SELECT faulted FROM processing_gens") is True


@pytest.mark.spec("LSE-06", "LSE-08")
def test_aborts_a_lease_after_its_150_seconds(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    popped_at = one_value("SELECT created FROM processing_gens")

    assert faults.abort_lapsed(now=popped_at + timedelta(seconds=149.9)) == 0
    assert faults.abort_lapsed(now=popped_at + timedelta(seconds=150)) == 1

    body = horde.status(request_id)[1]
    assert (body["waiting"], body["processing"], body["restarted"]) == (1, 0, 1)
    assert horde.reply(generation_id) == (
        400,
        {
            "message": f"Processing Generation with ID {generation_id} took too long to process "
            "and has been aborted! Generations must complete within 150 seconds.",
            "rc": "AbortedGen",
        },
    )
    assert one_value("SELECT aborted_jobs FROM workers") == 1


@pytest.mark.spec("LSE-06", "LSE-26")
def test_states_the_lease_the_generation_had(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    one_value("UPDATE processing_gens SET job_ttl = 163, deadline = created + interval '163 s' RETURNING 1")
    assert faults.abort_lapsed(now=clock.now() + timedelta(seconds=200)) == 1

    assert horde.reply(generation_id)[1]["message"].endswith("Generations must complete within 163 seconds.")


@pytest.mark.spec("LSE-05")
def test_takes_a_reply_past_the_deadline_until_the_sweep_has_come(horde: Horde) -> None:
    _, before_the_sweep = horde.in_flight()
    _, after_the_sweep = horde.in_flight()
    one_value("UPDATE processing_gens SET deadline = now() - interval '50 s' RETURNING 1")

    assert horde.reply(before_the_sweep)[0] == 200
    tasks.abort_lapsed_leases()
    assert horde.reply(after_the_sweep)[1]["rc"] == "AbortedGen"


def test_aborts_one_batch_a_run(horde: Horde) -> None:
    horde.pop()
    for _ in range(5):
        horde.submit()
        horde.pop()
    late = clock.now() + timedelta(seconds=200)

    assert [faults.abort_lapsed(now=late, limit=3) for _ in range(3)] == [3, 2, 0]


def test_deletes_a_request_20_minutes_after_its_activation(horde: Horde) -> None:
    request_id = horde.queued()
    activated_at = one_value("SELECT created FROM waiting_prompts")

    assert expiry.expire_batch(now=activated_at + timedelta(minutes=19, seconds=59)) == 0
    assert expiry.expire_batch(now=activated_at + timedelta(minutes=20)) == 1

    assert horde.status(request_id)[0] == 404
    assert count_rows("queue_rows") == {"queue_rows": 0}


def queued_text(horde: Horde) -> None:
    horde.queued_text(models=[MODEL])


def answered_text(horde: Horde) -> None:
    queued_text(horde)
    horde.reply_text(horde.pop_text()[1]["id"])


def cancelled(horde: Horde) -> None:
    horde.cancel(horde.queued())


def answered(horde: Horde) -> None:
    horde.reply(horde.in_flight()[1])


def answered_in_the_second_try(horde: Horde) -> None:
    horde.fault(horde.in_flight()[1])
    horde.reply(horde.pop()[1]["id"])


def answered_beside_a_fake(horde: Horde) -> None:
    horde.pop(name="paused")
    pause_workers()
    horde.queued()
    assert horde.pop(name="paused")[1]["id"] is not None
    horde.reply(horde.pop()[1]["id"])


@pytest.mark.parametrize(
    ("prepare", "chat", "outcome"),
    [
        (Horde.queued, "true", "unanswered"),
        (Horde.in_flight, "true", "unanswered"),
        (cancelled, "true", "done"),
        (answered, "true", "done"),
        (answered_in_the_second_try, "true", "done"),
        (answered_beside_a_fake, "true", "done"),
        (queued_text, "false", "unanswered"),
        (answered_text, "false", "done"),
    ],
)
def test_counts_what_an_expired_request_had_come_to(
    horde: Horde, prepare: Callable[[Horde], object], chat: str, outcome: str
) -> None:
    prepare(horde)
    before = counts_of("horde_requests_expired", "chat", "outcome")

    assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

    now = counts_of("horde_requests_expired", "chat", "outcome")
    assert now == before | {(chat, outcome): before.get((chat, outcome), 0) + 1}


def test_sweeps_a_request_that_was_never_activated(horde: Horde) -> None:
    horde.queued()
    one_value("UPDATE waiting_prompts SET active = false RETURNING 1")

    assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1


def test_keeps_the_ledger_of_an_expired_request(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    horde.reply(generation_id)
    before = count_rows("transfers")

    expiry.expire_batch(now=clock.now() + timedelta(hours=1))

    assert count_rows("transfers", "waiting_prompts") == before | {"waiting_prompts": 0}


def test_every_scheduled_task_exists_and_is_bounded() -> None:
    for entry in BEAT_SCHEDULE.values():
        task = app.tasks[str(entry["task"])]
        assert task.expires == entry["schedule"], "a run nobody took is dropped when the next one comes"
        assert task.time_limit == 55


def test_readiness_knows_every_scheduled_task() -> None:
    assert sorted(task.rpartition(".")[2] for task in SCHEDULED) == sorted(readiness.BEAT_TASKS)


@pytest.mark.parametrize("task", SCHEDULED)
def test_a_task_runs_and_leaves_its_mark(horde: Horde, task: str) -> None:
    name = task.rpartition(".")[2]
    app.tasks[task](unknown_keyword=1)

    [seconds] = beat_marks.seconds_since_last_runs([name], now=clock.now().timestamp()).values()
    assert seconds is not None
    assert seconds < 60


def test_readiness_shows_runs_and_backlog(horde: Horde) -> None:
    horde.in_flight()
    one_value("UPDATE processing_gens SET deadline = now() - interval '1 s' RETURNING 1")
    tasks.expire_requests()

    report = readiness.get(now=clock.now()).as_json()

    assert report["status"] == "ok"
    assert report["beat"]["abort_lapsed_leases"]["backlog"] == 1  # type: ignore[index]
    assert report["beat"]["expire_requests"]["seconds_since_last_run"] < 5  # type: ignore[index]


def test_metrics_show_what_readiness_does_though_nobody_asked_for_it(horde: Horde) -> None:
    horde.in_flight()
    one_value("UPDATE processing_gens SET deadline = now() - interval '1 s' RETURNING 1")
    # A Celery on another machine shares the mark in Redis and no instruments.
    redis.marks().hset(beat_marks.KEY, "lapse_holds", str(clock.now().timestamp() - 1000))

    shown = horde.http.get("/metrics").content.decode()

    assert 'horde_beat_backlog{task="abort_lapsed_leases"} 1.0' in shown
    [ran_at] = re.findall(r'^horde_beat_last_run_timestamp_seconds{task="lapse_holds"} (\S+)$', shown, re.MULTILINE)
    assert 999 < clock.now().timestamp() - float(ran_at) < 1060
