"""Rows written by raw SQL that names only the columns without a default, as the oldest statement would."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from django.db import connection


@dataclass(frozen=True)
class Written:
    """The keys of one user's worker, request and generation."""

    user_id: int
    worker_id: UUID
    request_id: UUID
    generation_id: UUID


def write_user() -> int:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO users (alias) VALUES ('someone') RETURNING id")
        return int(cursor.fetchone()[0])


def write_request(*, user_id: int, operation_key: UUID | None = None) -> UUID:
    request_id = uuid4()
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO waiting_prompts (id, user_id, n, jobs, max_length, created, expiry)
            VALUES (%s, %s, 1, 1, 16, now(), now())
            """,
            [request_id, user_id],
        )
        if operation_key:
            cursor.execute("UPDATE waiting_prompts SET operation_key = %s WHERE id = %s", [operation_key, request_id])
    return request_id


def write_all() -> Written:
    written = Written(
        user_id=(user_id := write_user()),
        worker_id=uuid4(),
        request_id=write_request(user_id=user_id),
        generation_id=uuid4(),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO workers (id, user_id, name) VALUES (%s, %s, 'one')", [written.worker_id, written.user_id]
        )
        cursor.execute(
            """
            INSERT INTO processing_gens (id, request_id, worker_id, model, created, deadline)
            VALUES (%s, %s, %s, 'model', now(), now())
            """,
            [written.generation_id, written.request_id, written.worker_id],
        )
    return written
