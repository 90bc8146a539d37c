"""Several connections at once: calls let go at the same moment, calls that wait in line for a lock, slow writes."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
from django.db import connection, connections, transaction

from tests.horde import Answer, one_value

Result = TypeVar("Result")
PARALLEL = 16
PATIENCE_SECONDS = 10

Connection = psycopg.Connection[tuple[Any, ...]]

PAUSE = """
CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
'BEGIN PERFORM pg_sleep(0.15); RETURN coalesce(NEW, OLD); END'
"""
SLOW_WRITE = "CREATE TRIGGER pause BEFORE INSERT OR UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION pause()"
SLOW_COMMIT = (
    "CREATE CONSTRAINT TRIGGER pause AFTER UPDATE OR DELETE ON {} DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION pause()"
)


def at_once(*calls: Callable[[], Result]) -> list[Result]:
    """Run the calls in threads, each on a connection of its own, let go at the same moment."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        connection.ensure_connection()
        gate.wait(timeout=30)
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(timeout=60) for future in [pool.submit(run, call) for call in calls]]


def without_waiting(call: Callable[[], Result]) -> Result:
    """Run a call on a connection of its own, which fails where it would have to wait for a lock."""

    def run() -> Result:
        one_value("SELECT set_config('lock_timeout', '1s', false)")
        return call()

    [result] = at_once(run)
    return result


def codes(answers: list[Answer]) -> list[str]:
    """Return how each call ended: its `rc`, or its status."""
    return sorted(str(body.get("rc", status)) for status, body in answers)


@contextmanager
def another_connection() -> Iterator[Connection]:
    """Connect to the test's database beside Django: it sees what was committed, each statement anew."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        yield other


class Line:
    """Calls that wait for a lock, one behind the other."""

    def __init__(self, pool: ThreadPoolExecutor, other: Connection) -> None:
        self._pool = pool
        self._other = other
        self._length = 0

    def join(self, call: Callable[[], Result]) -> "Future[Result]":
        """Start a call on a connection of its own, and return once it waits."""

        def run() -> Result:
            try:
                return call()
            finally:
                connections.close_all()

        future = self._pool.submit(run)
        self._length += 1
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while self._count_waiting() < self._length:
            assert not future.done(), f"the call has to wait for the lock, and ended with {future.result()}"
            assert time.monotonic() < give_up_at, "the call has to come to wait for the lock"
            time.sleep(0.01)
        return future

    def _count_waiting(self) -> int:
        row = self._other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone()
        assert row is not None, "a count always returns one row"
        count: int = row[0]
        return count

    def cut_off(self) -> None:
        """Break the connections of those who wait: what they did in their transactions is undone, as by a crash."""
        self._other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )


@contextmanager
def behind_a_lock(statement: str, parameters: list[Any] | None = None) -> Iterator[Line]:
    """Hold what a statement locks in this thread's transaction, while others join a line; the end lets them go."""
    with ThreadPoolExecutor(PARALLEL) as pool, another_connection() as other, transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
        yield Line(pool, other)


def behind_a_lock_on(request_id: str) -> AbstractContextManager[Line]:
    """Hold a request's row."""
    return behind_a_lock("SELECT 1 FROM waiting_prompts WHERE id = %s FOR NO KEY UPDATE", [request_id])


@contextmanager
def _triggers(statement: str, tables: tuple[str, ...]) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(PAUSE)
        for table in tables:
            cursor.execute(statement.format(table))
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION pause CASCADE")


@contextmanager
def slow_writes(*tables: str) -> Iterator[None]:
    """Make every written row of some tables take its time, so that whoever looks sees each state between."""
    with _triggers(SLOW_WRITE, tables):
        yield


@contextmanager
def slow_commits(*tables: str) -> Iterator[None]:
    """Make the commit of a transaction that changed or deleted rows of some tables take its time."""
    with _triggers(SLOW_COMMIT, tables):
        yield


@contextmanager
def watching(look: LiteralString) -> Iterator[set[tuple[Any, ...]]]:
    """Collect the different rows one statement returns, run again and again on another connection."""
    seen: set[tuple[Any, ...]] = set()
    is_over = threading.Event()

    def watch() -> None:
        with another_connection() as other:
            while True:
                # Read before the look: the last look comes after the block.
                is_last = is_over.is_set()
                seen.update(other.execute(look).fetchall())
                if is_last:
                    return

    with ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(watch)
        try:
            yield seen
        finally:
            is_over.set()
            watcher.result(timeout=PATIENCE_SECONDS)


@contextmanager
def deadlock_at(table: str) -> Iterator[None]:
    """Undo the first write of a row of a table as PostgreSQL undoes a transaction that it ends for a deadlock."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE SEQUENCE tries")
        cursor.execute(
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('tries') = 1 THEN "
            "RAISE EXCEPTION 'injected' USING ERRCODE = 'deadlock_detected'; END IF; RETURN coalesce(NEW, OLD); END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER lose BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION lose()"
        )
    try:
        yield
        assert one_value("SELECT last_value FROM tries") == 2, "the first try lost and the second came through"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION lose CASCADE")
            cursor.execute("DROP SEQUENCE tries")
