"""Many callers of the ledger at the same moment, each on a real connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection, transaction

from billing_app.services import ledger
from billing_app.services.ledger import NewTransfer, Posting
from tests.billing.books import NOW

Result = TypeVar("Result")

CONNECTIONS = 16


def post_alone(transfers: list[NewTransfer]) -> Posting:
    with transaction.atomic(durable=True):
        return ledger.post(transfers, now=NOW)


def post_each(batches: list[list[NewTransfer]]) -> list[Posting]:
    return [post_alone(batch) for batch in batches]


def run_at_once(calls: list[Callable[[], Result]]) -> list[Result]:
    """Run every call in a thread and on a connection of its own, all let go at the same moment."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result:
        try:
            connection.ensure_connection()
            gate.wait(timeout=30)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result(timeout=120) for future in [pool.submit(run, call) for call in calls]]
