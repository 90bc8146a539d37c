"""What is stuck in PostgreSQL is given up: a statement behind a lock, and the transaction of a process that froze."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hordechat.local import places, postgresql, stack
from tests.e2e.conftest import LiveHorde
from tests.e2e.test_walk import own_model

WAITING_FOR_A_LOCK = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
SHOW_LIMIT = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SHOW statement_timeout")
    print(*cursor.fetchone())
"""
WAIT = """
import time
print("on", flush=True)
time.sleep(60)
"""
FREEZE_IN_A_TRANSACTION = """
import os, signal, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "hordechat.settings.django"
import django
django.setup()
from django.db import connection, transaction
with transaction.atomic():
    connection.cursor().execute("SELECT 1 FROM waiting_prompts WHERE id = %s FOR UPDATE", [sys.argv[1]])
    print("locked", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture(scope="module")
def hasty(live: LiveHorde) -> Iterator[LiveHorde]:
    """Run another API on the live site's database, whose statements may take three seconds."""
    environment = {**live.environment, "HORDE_DATABASE_STATEMENT_TIMEOUT_SECONDS": "3", "HORDE_LOG_LEVEL": "ERROR"}
    with stack.api(environment) as api, replace(live, api=api, environment=environment) as horde:
        yield horde


def take_job(horde: LiveHorde) -> tuple[str, str, str]:
    """Return the model and the ids of a request and of its generation, which a worker has in hand."""
    model = own_model()
    horde.pop(name=model, models=[model], model_id=model)
    request_id = horde.submit(model=model)[1]["id"]
    return model, request_id, horde.pop(name=model, models=[model], model_id=model)[1]["id"]


def test_a_reply_behind_a_lock_gets_503_and_is_taken_once_the_lock_is_gone(hasty: LiveHorde) -> None:
    model, request_id, job = take_job(hasty)

    with psycopg.connect(hasty.environment["DATABASE_URL"]) as holder:
        holder.execute("SELECT 1 FROM waiting_prompts WHERE id = %s FOR UPDATE", [request_id])
        status, answer = hasty.reply(job, model_id=model)
    again, _ = hasty.reply(job, model_id=model)

    assert (status, answer["rc"], again) == (503, "ServiceUnavailable", 200)
    assert hasty.status(request_id)[1]["done"]


def test_a_process_frozen_in_a_transaction_keeps_no_request(hasty: LiveHorde) -> None:
    model, request_id, job = take_job(hasty)
    frozen = subprocess.Popen(
        [sys.executable, "-c", FREEZE_IN_A_TRANSACTION, request_id],
        env=stack.process_environment(hasty.environment),
        cwd=places.PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "locked\n"
        deadline = time.monotonic() + 30
        while hasty.reply(job, model_id=model)[0] == 503:
            assert time.monotonic() < deadline, "the frozen process still holds the request"
    finally:
        frozen.kill()
        frozen.communicate()

    assert hasty.status(request_id)[1]["done"]


@pytest.mark.slow
def test_a_call_that_finds_no_connection_in_the_pool_gets_503(live: LiveHorde) -> None:
    environment = {**live.environment, "HORDE_DATABASE_POOL_SIZE": "1", "HORDE_LOG_LEVEL": "ERROR"}
    with (
        stack.api(environment, workers=1, threads=2) as api,
        replace(live, api=api) as busy,
        psycopg.connect(live.environment["DATABASE_URL"]) as holder,
        ThreadPoolExecutor(1) as pool,
    ):
        model, request_id, job = take_job(busy)
        holder.execute("SELECT 1 FROM waiting_prompts WHERE id = %s FOR UPDATE", [request_id])
        waiting = pool.submit(busy.reply, job, model_id=model)
        while busy.value(WAITING_FOR_A_LOCK) == 0:
            assert not waiting.done(), "it does not wait for the lock"
            time.sleep(0.05)

        refused = busy.status(request_id)
        holder.rollback()

        assert (refused[0], refused[1]["rc"], waiting.result()[0]) == (503, "ServiceUnavailable", 200)
        assert busy.status(request_id)[1]["done"]


def test_an_operators_command_has_no_such_bound(hasty: LiveHorde) -> None:
    done = stack.manage(hasty.environment, "shell", "--no-imports", "-c", SHOW_LIMIT)

    assert done.stdout.strip() == "0", done.stderr


def test_an_operators_command_without_a_database_says_where_it_looked_and_what_to_do() -> None:
    done = stack.manage({"DATABASE_URL": "postgresql://hordechat:secret@127.0.0.1:1/none"}, "create_user", "somebody")

    assert done.returncode == 1
    assert "127.0.0.1" in done.stderr
    assert done.stderr.endswith("Start PostgreSQL, or correct DATABASE_URL.\n")
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_an_operators_command_before_the_first_migration_says_to_migrate(tmp_path: Path) -> None:
    with postgresql.running(tmp_path / "postgresql", durable=False) as database:
        database.create_database("empty")

        done = stack.manage({"DATABASE_URL": database.url("empty")}, "create_user", "somebody")

    assert done.returncode == 1
    assert done.stderr.startswith("The database is not migrated")
    assert done.stderr.endswith("Run manage.py migrate.\n")


def test_ctrl_c_ends_an_operators_command_without_a_traceback(live_environment: dict[str, str]) -> None:
    running = subprocess.Popen(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", WAIT],
        env=stack.process_environment(live_environment),
        cwd=places.PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "on\n"

    os.kill(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=30)

    assert (running.returncode, errors) == (130, "")
