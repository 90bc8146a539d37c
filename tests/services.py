"""A database and a Redis of its own for every test process, made before Django reads its settings.

Loaded by `-p tests.services`. `script/test` starts PostgreSQL, migrates a template database and names it in
`DATABASE_URL`; each process clones that template, so that tests of two processes never meet.
"""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from hordechat.local import valkey

PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "main")
_stack = ExitStack()


def _clone(template_url: str, name: str) -> str:
    """Make a fresh copy of the template database and return its URL."""
    parts = urlsplit(template_url)
    template = parts.path.strip("/")
    with psycopg.connect(parts._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    return parts._replace(path=f"/{name}").geturl()


def clone_for(purpose: str) -> str:
    """Make a further database for one purpose of this process, such as a live server, and return its URL."""
    return _clone(TEMPLATE_URL, f"{urlsplit(TEMPLATE_URL).path.strip('/')}_{PROCESS}_{purpose}")


def drop(url: str) -> None:
    """Drop a database made by `clone_for`."""
    parts = urlsplit(url)
    with psycopg.connect(parts._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(parts.path.strip("/")))
        )


if "DATABASE_URL" not in os.environ:
    raise pytest.UsageError("The tests need their services: run script/test, which takes pytest's arguments.")

TEMPLATE_URL = os.environ.setdefault("HORDECHAT_TEST_TEMPLATE_URL", os.environ["DATABASE_URL"])
_folder = Path(_stack.enter_context(tempfile.TemporaryDirectory(prefix="hordechat-test-")))
os.environ["DATABASE_URL"] = clone_for("tests")
os.environ["REDIS_URL"] = _stack.enter_context(valkey.running(_folder / "valkey")).url
# Tests of races open a connection for each thread; a pool would make them take turns.
os.environ["HORDE_DATABASE_POOL_SIZE"] = "0"
# A test's transaction lies idle while the test waits for something else, as long as the test may take.
os.environ.setdefault("HORDE_DATABASE_STATEMENT_TIMEOUT_SECONDS", "300")
# Tests call as fast as they can; those of the limits switch them on.
os.environ.setdefault("HORDE_RATE_LIMITS_ENABLED", "false")


def pytest_unconfigure() -> None:
    """Give everything back."""
    _stack.close()
    drop(os.environ["DATABASE_URL"])
