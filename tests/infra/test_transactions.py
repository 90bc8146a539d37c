"""A use case that lost against another transaction runs again from nothing, a bounded number of times."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from psycopg import errors as postgres

from hordechat.infra import transactions
from hordechat.infra.transactions import ATTEMPTS, retry_on_conflict

pytestmark = pytest.mark.usefixtures("committed")

WAIT_SECONDS = 20


@pytest.fixture
def counters(committed: None) -> Iterator[None]:
    """Make a table of two rows for transactions to meet at."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE counters (id int PRIMARY KEY, total int NOT NULL)")
        cursor.execute("INSERT INTO counters VALUES (1, 0), (2, 0)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE counters")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PAUSE_SECONDS", (0.001, 0.002))


def add(counter: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE counters SET total = total + 1 WHERE id = %s", [counter])


def totals() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT total FROM counters ORDER BY id")
        return [row[0] for row in cursor.fetchall()]


def raised_by_postgresql(error: type[Exception]) -> OperationalError:
    """Return an error as Django wraps it."""
    wrapped = OperationalError("lost")
    wrapped.__cause__ = error("lost")
    return wrapped


def run_at_once(*calls: Callable[[], object]) -> None:
    def run(call: Callable[[], object]) -> None:
        try:
            call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        for future in [pool.submit(run, call) for call in calls]:
            future.result(timeout=WAIT_SECONDS)


@pytest.mark.usefixtures("counters")
def test_both_sides_of_a_deadlock_get_through() -> None:
    met = threading.Barrier(2)
    tries: list[str] = []

    @retry_on_conflict
    def add_to_both(name: str, first: int, second: int) -> None:
        is_first_try = name not in tries
        tries.append(name)
        with transaction.atomic(durable=True):
            add(first)
            if is_first_try:
                met.wait(timeout=WAIT_SECONDS)
            add(second)

    run_at_once(lambda: add_to_both("a", 1, 2), lambda: add_to_both("b", 2, 1))

    assert totals() == [2, 2]
    # A busy machine may let the loser come back before the winner has woken up, and the two meet once more.
    assert len(tries) >= 3


@pytest.mark.usefixtures("counters")
def test_a_serialisation_failure_is_tried_again() -> None:
    met = threading.Barrier(2)
    tries: list[str] = []

    @retry_on_conflict
    def add_to_the_sum(name: str) -> None:
        is_first_try = name not in tries
        tries.append(name)
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            cursor.execute("SELECT sum(total) FROM counters")
            seen = cursor.fetchone()[0]
            if is_first_try:
                met.wait(timeout=WAIT_SECONDS)
            cursor.execute("UPDATE counters SET total = %s WHERE id = 1", [seen + 1])

    run_at_once(lambda: add_to_the_sum("a"), lambda: add_to_the_sum("b"))

    assert totals() == [2, 0]
    assert len(tries) == 3


@pytest.mark.parametrize("error", [postgres.DeadlockDetected, postgres.SerializationFailure])
def test_gives_up_after_four_tries_with_the_error_itself(error: type[Exception]) -> None:
    tries: list[int] = []

    @retry_on_conflict
    def lose() -> None:
        tries.append(1)
        raise raised_by_postgresql(error)

    with pytest.raises(OperationalError) as lost:
        lose()

    assert len(tries) == ATTEMPTS == 4
    assert isinstance(lost.value.__cause__, error)


@pytest.mark.parametrize(
    "error",
    [raised_by_postgresql(postgres.QueryCanceled), OperationalError("gone"), IntegrityError("twice"), KeyError(1)],
)
def test_passes_any_other_error_through_at_once(error: Exception) -> None:
    tries: list[int] = []

    @retry_on_conflict
    def fail() -> None:
        tries.append(1)
        raise error

    with pytest.raises(type(error)):
        fail()

    assert len(tries) == 1


def test_does_not_repeat_inside_the_transaction_of_another() -> None:
    tries: list[int] = []

    @retry_on_conflict
    def lose() -> None:
        tries.append(1)
        raise raised_by_postgresql(postgres.DeadlockDetected)

    with pytest.raises(OperationalError), transaction.atomic():
        lose()

    assert len(tries) == 1


def test_returns_what_the_use_case_returns_and_keeps_its_name() -> None:
    @retry_on_conflict
    def price(amount: Decimal, *, times: int) -> Decimal:
        """Tell the price."""
        return amount * times

    assert price(Decimal(2), times=3) == 6
    assert (price.__name__, price.__doc__) == ("price", "Tell the price.")
