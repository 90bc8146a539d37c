"""However the roll-up is run, cut off or overtaken, each finished generation is counted once."""

import os
import signal
import subprocess
import sys
import time

import pytest
from django.db import OperationalError

from requests_app.services import statistics
from tests.horde import count_rows
from tests.races import PATIENCE_SECONDS, another_connection, at_once, behind_a_lock, slow_writes, without_waiting
from tests.statistics.generations import MODEL, NOW, finish, list_rows

pytestmark = pytest.mark.usefixtures("committed")

ROWS = 500
LOCK_TOTALS = "LOCK TABLE generation_totals IN SHARE MODE"
"""Lets nobody write totals: a run has removed its batch by then, and has still to add it up."""
HELD_BACK = """
SELECT pid
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND wait_event_type = 'Lock'
"""
INSERT_ONE = """
INSERT INTO finished_generations (finished_at, model, is_chat, outcome, max_length, written_tokens, milliseconds)
VALUES (%s, %s, false, 'ok', 64, 20, 1500)
"""
ROLL_UP = """
import django
django.setup()
from requests_app.services import statistics
statistics.roll_up_batch()
"""


def require_counted_once(count: int) -> None:
    assert [row[5:] for row in list_rows()] == [(count, 64 * count, 20 * count, 1500 * count)] * 3
    assert count_rows("finished_generations") == {"finished_generations": 0}


def require_nothing_done() -> None:
    assert count_rows("finished_generations", "generation_totals") == {
        "finished_generations": ROWS, "generation_totals": 0,
    }  # fmt: skip


def roll_up_again() -> None:
    """Run until it is this connection's turn: the server may take a moment to notice that a client is gone."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while statistics.roll_up_all(now=NOW) == 0:
        assert time.monotonic() < give_up_at, "the run that was cut off has to give its lock back"
        time.sleep(0.01)


def test_runs_at_the_same_moment_count_once() -> None:
    finish(ROWS)

    with slow_writes("generation_totals"):
        done = at_once(*[lambda: statistics.roll_up_all(now=NOW)] * 8)

    assert sorted(done) == [0] * 7 + [ROWS]
    require_counted_once(ROWS)


def test_small_batches_of_many_runs_count_once_while_more_is_written() -> None:
    finish(ROWS)

    def roll_up() -> int:
        return sum(statistics.roll_up_batch(limit=20) for _ in range(40))

    def write() -> int:
        for _ in range(50):
            finish()
        return 0

    done = sum(at_once(*[roll_up] * 4, *[write] * 4))
    rest = statistics.roll_up_all(now=NOW)

    assert done + rest == ROWS + 200
    require_counted_once(ROWS + 200)


def test_one_that_is_committed_late_is_counted_though_its_id_is_lower() -> None:
    with another_connection() as other:
        with other.transaction():
            other.execute(INSERT_ONE, [NOW, MODEL])
            finish()
            assert statistics.roll_up_all(now=NOW) == 1
            assert statistics.roll_up_all(now=NOW) == 0

        assert statistics.roll_up_all(now=NOW) == 1

    require_counted_once(2)


def test_a_writer_never_waits_for_a_run() -> None:
    finish(ROWS)

    with behind_a_lock(LOCK_TOTALS) as line:
        run = line.join(statistics.roll_up_batch)
        with another_connection() as other:
            other.execute("SET lock_timeout = '1ms'")
            other.execute(INSERT_ONE, [NOW, MODEL])

    assert run.result() == ROWS
    assert statistics.roll_up_all(now=NOW) == 1
    require_counted_once(ROWS + 1)


def test_a_run_beside_another_does_nothing() -> None:
    finish(ROWS)

    with behind_a_lock(LOCK_TOTALS) as line:
        first = line.join(statistics.roll_up_batch)
        rolled_up = without_waiting(statistics.roll_up_batch)
        pruned = without_waiting(lambda: statistics.prune_batch(now=NOW))

    assert (first.result(), rolled_up, pruned) == (ROWS, 0, 0)
    require_counted_once(ROWS)


def test_a_process_killed_in_the_middle_has_done_nothing() -> None:
    finish(ROWS)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "hordechat.settings.django"}

    with behind_a_lock(LOCK_TOTALS) as line, subprocess.Popen([sys.executable, "-c", ROLL_UP], env=environment) as run:
        try:
            line.join(run.wait)
        finally:
            run.kill()

    assert run.returncode == -signal.SIGKILL
    require_nothing_done()
    roll_up_again()
    require_counted_once(ROWS)


def test_a_connection_ended_in_the_middle_has_done_nothing() -> None:
    finish(ROWS)

    with behind_a_lock(LOCK_TOTALS) as line, another_connection() as other:
        run = line.join(statistics.roll_up_batch)
        [(pid,)] = other.execute(HELD_BACK).fetchall()
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        with pytest.raises(OperationalError):
            run.result(timeout=PATIENCE_SECONDS)

    require_nothing_done()
    roll_up_again()
    require_counted_once(ROWS)
