"""A named lock belongs to one transaction at a time, and ends with it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from hordechat.infra.advisory_locks import try_lock

pytestmark = pytest.mark.usefixtures("committed")


def elsewhere(call: Callable[[], bool]) -> bool:
    """Run a call on a connection of its own, in a transaction."""

    def run() -> bool:
        try:
            with transaction.atomic(durable=True):
                return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result(timeout=20)


def test_only_one_transaction_holds_a_lock() -> None:
    with transaction.atomic(durable=True):
        assert try_lock("sweep")
        assert try_lock("sweep"), "its own holder may take it again"

        assert not elsewhere(lambda: try_lock("sweep"))
        assert elsewhere(lambda: try_lock("another"))

    assert elsewhere(lambda: try_lock("sweep"))


def test_a_rolled_back_transaction_gives_its_lock_back() -> None:
    with transaction.atomic(durable=True):
        assert try_lock("sweep")
        transaction.set_rollback(True)

    assert elsewhere(lambda: try_lock("sweep"))


def test_a_lock_without_a_transaction_is_a_fault_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="as long as the transaction"):
        try_lock("sweep")


@pytest.mark.parametrize("name", ["", "a", "abort_lapsed_leases", "ä" * 1000, "\x00"])
def test_any_name_is_a_number_postgresql_takes(name: str) -> None:
    with transaction.atomic(durable=True):
        assert try_lock(name)
