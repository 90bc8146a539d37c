"""The index that makes an operation key count once, and the migration that builds it while the horde is in use."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import IntegrityError, transaction

from tests.schema.databases import CHAT_COLUMNS, OPERATION_KEY_INDEX, Database
from tests.schema.rows import write_request, write_user

KEY, OTHER_KEY = UUID(int=1), UUID(int=2)
NAME = "ix_waiting_prompts_user_operation_key"
INDEX = "SELECT indexrelid, indisvalid FROM pg_index WHERE indexrelid = to_regclass(%(name)s)"
IS_APPLIED = "SELECT count(*) FROM django_migrations WHERE app = 'requests_app' AND name = '0003_operation_key_index'"
FORGET_THE_MIGRATION = "DELETE FROM django_migrations WHERE app = 'requests_app' AND name = '0003_operation_key_index'"
WAITING_STATEMENTS = """
SELECT query
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND wait_event_type = 'Lock'
"""
GIVE_TWO_THE_SAME_KEY = """
UPDATE waiting_prompts
   SET operation_key = %(key)s, user_id = (SELECT max(id) FROM users)
 WHERE order_key IN (1, 2)
"""
TAKE_THEM_BACK = "UPDATE waiting_prompts SET operation_key = NULL WHERE order_key IN (1, 2)"


def find_index(database: Database) -> list[tuple[int, bool]]:
    """Return the id of the index and whether it is valid; nothing when there is none."""
    return [(oid, is_valid) for oid, is_valid in database.fetch(INDEX, name=NAME)]


def wait_for_build(database: Database, migration: "Future[None]") -> str:
    """Return the statement of the migration that waits for another's lock."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not migration.done():
        if statements := database.fetch(WAITING_STATEMENTS):
            return " ".join(statements[0][0].split())
        time.sleep(0.02)
    pytest.fail("The migration did not wait for the open transaction.")


@pytest.mark.spec("SCM-36")
def test_is_unique_and_partial(chat_columns: Database) -> None:
    chat_columns.migrate(OPERATION_KEY_INDEX)

    ((definition,),) = chat_columns.fetch("SELECT pg_get_indexdef(to_regclass(%(name)s))", name=NAME)
    assert definition == (
        f"CREATE UNIQUE INDEX {NAME} ON public.waiting_prompts USING btree (user_id, operation_key)"
        " WHERE (operation_key IS NOT NULL)"
    )
    assert [is_valid for _, is_valid in find_index(chat_columns)] == [True]


@pytest.mark.spec("SCM-37", "SCM-38")
def test_is_built_outside_a_transaction_while_requests_are_written(chat_columns: Database) -> None:
    with chat_columns.connect(autocommit=False) as client, ThreadPoolExecutor(1) as thread:
        client.execute("UPDATE waiting_prompts SET n = 0 WHERE order_key = 1")
        migration = thread.submit(chat_columns.migrate, OPERATION_KEY_INDEX)
        try:
            statement = wait_for_build(chat_columns, migration)
            # Seen from here, the index can only be there because the build has committed its first part.
            seen_meanwhile = [is_valid for _, is_valid in find_index(chat_columns)]
            # A build that locks the table would hold up the next writer behind the open transaction.
            chat_columns.execute("SET lock_timeout = '2s'; UPDATE waiting_prompts SET n = 0 WHERE order_key = 2")
            was_waiting = not migration.done()
        finally:
            client.rollback()
        migration.result(timeout=30)

    assert statement.startswith("CREATE UNIQUE INDEX CONCURRENTLY ")
    assert NAME in statement
    assert seen_meanwhile == [False]
    assert was_waiting
    assert [is_valid for _, is_valid in find_index(chat_columns)] == [True]


@pytest.mark.spec("SCM-39", "SCM-45")
def test_a_failed_build_leaves_an_invalid_index_that_the_next_run_replaces(chat_columns: Database) -> None:
    chat_columns.execute(GIVE_TWO_THE_SAME_KEY, key=KEY)

    with pytest.raises(IntegrityError, match=NAME):
        chat_columns.migrate(OPERATION_KEY_INDEX)
    ((first, is_first_valid),) = find_index(chat_columns)
    with pytest.raises(IntegrityError, match=NAME):
        chat_columns.migrate(OPERATION_KEY_INDEX)
    ((second, is_second_valid),) = find_index(chat_columns)
    applied_after_failures = chat_columns.fetch(IS_APPLIED)
    chat_columns.execute(TAKE_THEM_BACK)
    chat_columns.migrate(OPERATION_KEY_INDEX)
    ((last, is_last_valid),) = find_index(chat_columns)

    assert [is_first_valid, is_second_valid, is_last_valid] == [False, False, True]
    assert len({first, second, last}) == 3
    assert applied_after_failures == [(0,)]
    assert chat_columns.fetch(IS_APPLIED) == [(1,)]
    assert chat_columns.fetch("SELECT relname FROM pg_class WHERE relname LIKE 'ix_waiting_prompts%'") == [(NAME,)]


@pytest.mark.spec("SCM-45")
def test_a_run_that_finds_a_valid_index_leaves_it_alone(chat_columns: Database) -> None:
    chat_columns.migrate(OPERATION_KEY_INDEX)
    built = find_index(chat_columns)
    # As if the process had ended between the build and the note that it is done.
    chat_columns.execute(FORGET_THE_MIGRATION)

    chat_columns.migrate(OPERATION_KEY_INDEX)

    assert find_index(chat_columns) == built
    assert chat_columns.fetch(IS_APPLIED) == [(1,)]


@pytest.mark.spec("SCM-45")
def test_comes_after_the_columns_and_goes_without_them(chat_columns: Database) -> None:
    before = find_index(chat_columns)

    chat_columns.migrate(OPERATION_KEY_INDEX)
    chat_columns.migrate(CHAT_COLUMNS)

    assert before == find_index(chat_columns) == []
    assert chat_columns.fetch("SELECT count(operation_key) FROM waiting_prompts") == [(0,)]


@pytest.mark.django_db
@pytest.mark.spec("SCM-40")
@pytest.mark.parametrize(
    ("keys", "other_users_keys"),
    [
        pytest.param([None, None], [None], id="no key, as often as one likes"),
        pytest.param([KEY], [KEY], id="the same key under two users"),
        pytest.param([KEY, OTHER_KEY, None], [], id="two keys of one user"),
    ],
)
def test_lets_in(keys: list[UUID | None], other_users_keys: list[UUID | None]) -> None:
    user_id, other_user_id = write_user(), write_user()

    written = [write_request(user_id=user_id, operation_key=key) for key in keys]
    written += [write_request(user_id=other_user_id, operation_key=key) for key in other_users_keys]

    assert len(set(written)) == len(keys) + len(other_users_keys)


@pytest.mark.django_db
@pytest.mark.spec("SCM-36")
def test_refuses_a_key_its_user_used_before() -> None:
    user_id = write_user()
    write_request(user_id=user_id, operation_key=KEY)

    with pytest.raises(IntegrityError, match=NAME), transaction.atomic():
        write_request(user_id=user_id, operation_key=KEY)
