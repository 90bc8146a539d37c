"""Databases that migrations are run on, forward and back, while the tests' own database stays as it is."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql

from tests import services

PROJECT_APPS = ("billing_app", "workers_app", "requests_app")

Target = tuple[str, str | None]
"""An app and the name of a migration; no name is the state before the app's first one."""

TEXT_ONLY: list[Target] = [
    ("billing_app", "0001_baseline"),
    ("workers_app", "0001_text_baseline"),
    ("requests_app", "0001_text_baseline"),
]
CHAT_COLUMNS: list[Target] = [("requests_app", "0002_chat_columns"), ("workers_app", "0002_chat_columns")]
OPERATION_KEY_INDEX: list[Target] = [("requests_app", "0003_operation_key_index")]


@dataclass(frozen=True)
class Database:
    """A database of its own; Django reaches it by its alias, everything else by further connections."""

    url: str
    alias: str

    def migrate(self, targets: list[Target] | None = None) -> None:
        """Run the project's migrations to the targets, or to the latest; in any thread."""
        connection = connections[self.alias]
        try:
            executor = MigrationExecutor(connection)
            executor.migrate(targets or [executor.loader.graph.leaf_nodes(app)[0] for app in PROJECT_APPS])
        finally:
            connection.close()

    def list_migrations(self) -> list[tuple[str, str]]:
        """Return the project's migrations in the order they are applied."""
        loader = MigrationExecutor(connections[self.alias]).loader
        leaves = [leaf for app in PROJECT_APPS for leaf in loader.graph.leaf_nodes(app)]
        plan = dict.fromkeys(key for leaf in leaves for key in loader.graph.forwards_plan(leaf))
        return [key for key in plan if key[0] in PROJECT_APPS]

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection:
        """Open a connection that Django does not know."""
        return psycopg.connect(self.url, autocommit=autocommit)

    def fetch(self, statement: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement on a connection of its own and return its rows."""
        with self.connect() as connection:
            return connection.execute(statement.encode(), parameters or None).fetchall()

    def execute(self, statement: str, **parameters: object) -> None:
        """Run a statement, or several without parameters, on a connection of its own."""
        with self.connect() as connection:
            connection.execute(statement.encode(), parameters or None)


@contextmanager
def copied(template: str, purpose: str) -> Iterator[Database]:
    """Copy a database of that name under another, let Django reach the copy, and drop it in the end."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    name = f"{parts.path.strip('/')}_{purpose}"
    with psycopg.connect(parts._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    database = Database(url=parts._replace(path=f"/{name}").geturl(), alias=purpose)
    connections.settings[purpose] = {**connections.settings["default"], "NAME": name}
    try:
        yield database
    finally:
        connections[purpose].close()
        del connections[purpose]
        del connections.settings[purpose]
        services.drop(database.url)
