"""Django's PostgreSQL backend, with a pool that gives up all its connections as soon as one is found dead.

After a restart of the server every pooled connection is dead. psycopg's pool finds that out one connection and one
pause at a time, and the pauses double: with four connections a request waited seven seconds.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import psycopg
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

Connection = psycopg.Connection[Any]
Pool = ConnectionPool[Connection]


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection of a process; the process's pool is shared by all of them."""

    _connection_pools: ClassVar[dict[str, Pool]]
    _configure_connection: Callable[[Connection], None]

    @property
    def pool(self) -> "Pool | None":
        """The process's pool, made at its first use; None where the settings ask for none."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DB_ALIAS or not options:
            return None
        if self.alias not in self._connection_pools:
            # Two threads may both make one; an unopened pool holds nothing, and the first to arrive here wins.
            self._connection_pools.setdefault(self.alias, self._make_pool(options))
        return self._connection_pools[self.alias]

    def _make_pool(self, options: dict[str, Any]) -> Pool:
        def check(connection: Connection) -> None:
            try:
                ConnectionPool.check_connection(connection)
            except psycopg.Error:
                pool.drain()
                raise

        pool: Pool = ConnectionPool(
            kwargs={**self.get_connection_params(), "autocommit": True},
            open=False,
            configure=self._configure_connection,
            check=check,
            **options,
        )
        return pool
