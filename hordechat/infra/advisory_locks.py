"""Named locks that a transaction holds until it ends; a session's lock would leak through the pool (decision S6)."""

import zlib

from django.db import connection


def try_lock(name: str) -> bool:
    """Take the lock for the rest of the open transaction, or return False at once when another one holds it."""
    assert connection.in_atomic_block, "the lock lives as long as the transaction"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [LOCK_SPACE, _number(name)])
        row: tuple[bool] = cursor.fetchone()
    return row[0]


LOCK_SPACE = 0x0CDE
"""Keeps our numbers apart from those other programs may use on the same database."""


def _number(name: str) -> int:
    return zlib.crc32(name.encode()) - 2**31
