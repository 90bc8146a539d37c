"""Databases in the states a migration starts from."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from pytest_django import DjangoDbBlocker

from tests.schema.databases import CHAT_COLUMNS, TEXT_ONLY, Database, copied

FILL = """
INSERT INTO users (alias)
SELECT 'user ' || number
  FROM generate_series(1, 20) AS number;

INSERT INTO workers (id, user_id, name, models)
SELECT gen_random_uuid(), (SELECT max(id) FROM users) - number % 20, 'worker ' || number, '{one model}'
  FROM generate_series(1, 2000) AS number;

INSERT INTO waiting_prompts (id, user_id, prompt, models, n, jobs, max_length, active, order_key, created, expiry)
SELECT gen_random_uuid(), (SELECT max(id) FROM users) - number % 20, repeat('words ', number), '{one model}', 1, 2, 80,
       true, number, now(), now() + interval '20 minutes'
  FROM generate_series(1, 3000) AS number;

INSERT INTO queue_rows (request_id, model, order_key, created, max_length, max_context_length, user_id)
SELECT id, 'one model', order_key, created, max_length, max_context_length, user_id
  FROM waiting_prompts;

INSERT INTO processing_gens (id, request_id, worker_id, model, created, deadline)
SELECT gen_random_uuid(), id, (SELECT min(id::text)::uuid FROM workers), 'one model', created, expiry
  FROM waiting_prompts;
"""


@pytest.fixture(scope="session")
def text_only_template(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Name a database as it was before chat, with some thousand rows in it."""
    with django_db_blocker.unblock(), copied("template0", "text_only") as database:
        database.migrate(TEXT_ONLY)
        database.execute(FILL)
        yield urlsplit(database.url).path.strip("/")


@pytest.fixture(scope="session")
def chat_columns_template(django_db_blocker: DjangoDbBlocker, text_only_template: str) -> Iterator[str]:
    """Name a database with rows and the chat columns, without the index on operation keys."""
    with django_db_blocker.unblock(), copied(text_only_template, "chat_columns") as database:
        database.migrate(CHAT_COLUMNS)
        yield urlsplit(database.url).path.strip("/")


@pytest.fixture
def empty(django_db_blocker: DjangoDbBlocker) -> Iterator[Database]:
    """Give a database without a table."""
    with django_db_blocker.unblock(), copied("template0", "empty") as database:
        yield database


@pytest.fixture
def text_only(django_db_blocker: DjangoDbBlocker, text_only_template: str) -> Iterator[Database]:
    """Give a filled database as it was before chat."""
    with django_db_blocker.unblock(), copied(text_only_template, "upgrade") as database:
        yield database


@pytest.fixture
def chat_columns(django_db_blocker: DjangoDbBlocker, chat_columns_template: str) -> Iterator[Database]:
    """Give a filled database with the chat columns, without the index on operation keys."""
    with django_db_blocker.unblock(), copied(chat_columns_template, "index") as database:
        yield database
