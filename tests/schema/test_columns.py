"""Each chat column is in the database as documented: its type, whether it may be null, its default."""

import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from requests_app.models import Generation, Request
from tests.schema.rows import write_all
from workers_app.models import Worker

PROJECT = Path(__file__).parents[2]
APPS = ("requests_app", "workers_app", "billing_app")
MAY_TOUCH_THE_CONVERSATION = {"store_request.sql", "claim.sql", "fake.sql"}
"""The statement that writes a request and those whose row becomes a worker's job."""
MAY_TOUCH_THE_EXTRAS = MAY_TOUCH_THE_CONVERSATION | {"submit_facts.sql"}
"""A reply is judged by them as well."""
MAY_PASS_ON_WHOLE_ROWS = {"give_back.sql"}
"""Its star feeds the next part of the same statement, which drops the documents unread."""

DEFINITION = """
SELECT concat_ws(
           ' ',
           format_type(atttypid, atttypmod),
           CASE WHEN attnotnull THEN 'NOT NULL' ELSE 'NULL' END,
           'DEFAULT ' || pg_get_expr(adbin, adrelid)
       )
  FROM pg_attribute
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE attrelid = %(table)s::regclass
   AND attname = %(column)s
   AND NOT attisdropped
"""


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "definition"),
    [
        pytest.param("waiting_prompts.is_chat", "boolean NOT NULL DEFAULT false", marks=pytest.mark.spec("SCM-01")),
        pytest.param("waiting_prompts.messages", "jsonb NULL", marks=pytest.mark.spec("SCM-02")),
        pytest.param("waiting_prompts.operation_key", "uuid NULL", marks=pytest.mark.spec("SCM-03")),
        pytest.param("waiting_prompts.operation_fingerprint", "character(64) NULL", marks=pytest.mark.spec("SCM-04")),
        pytest.param("waiting_prompts.context_adjustments", "jsonb NULL", marks=pytest.mark.spec("SCM-05")),
        pytest.param("waiting_prompts.chat_extras", "jsonb NULL", marks=pytest.mark.spec("SCM-06")),
        pytest.param("waiting_prompts.chat_required_features", "text[] NULL", marks=pytest.mark.spec("SCM-07")),
        pytest.param(
            "waiting_prompts.chat_conformance",
            "character varying(16) NOT NULL DEFAULT 'strict'::character varying",
            marks=pytest.mark.spec("SCM-08"),
        ),
        pytest.param(
            "waiting_prompts.chat_tools_temperature", "double precision NULL", marks=pytest.mark.spec("SCM-09")
        ),
        pytest.param(
            "waiting_prompts.chat_messages_offloaded",
            "boolean NOT NULL DEFAULT false",
            marks=pytest.mark.spec("SCM-10"),
        ),
        pytest.param(
            "waiting_prompts.chat_fault_reason", "character varying(1000) NULL", marks=pytest.mark.spec("SCM-11")
        ),
        pytest.param("waiting_prompts.chat_fault_rc", "character varying(32) NULL", marks=pytest.mark.spec("SCM-12")),
        pytest.param("workers.accepts_chat_jobs", "boolean NOT NULL DEFAULT false", marks=pytest.mark.spec("SCM-13")),
        pytest.param("workers.accepts_prompt_jobs", "boolean NOT NULL DEFAULT true", marks=pytest.mark.spec("SCM-14")),
        pytest.param("workers.chat_features", "text[] NULL", marks=pytest.mark.spec("SCM-15")),
        pytest.param("workers.chat_max_context_length", "integer NULL", marks=pytest.mark.spec("SCM-16", "SCM-42")),
        pytest.param("workers.chat_max_length", "integer NULL", marks=pytest.mark.spec("SCM-17", "SCM-42")),
        pytest.param(
            "workers.chat_model_id", "character varying(255) NULL", marks=pytest.mark.spec("SCM-18", "SCM-42")
        ),
        pytest.param("workers.image_transports", "text[] NULL", marks=pytest.mark.spec("SCM-19")),
        pytest.param("workers.chat_tools_max_temperature", "double precision NULL", marks=pytest.mark.spec("SCM-20")),
        pytest.param("workers.nonconformant_replies", "integer NOT NULL DEFAULT 0", marks=pytest.mark.spec("SCM-21")),
        pytest.param("processing_gens.message", "jsonb NULL", marks=pytest.mark.spec("SCM-22")),
        pytest.param("processing_gens.finish_reason", "character varying(32) NULL", marks=pytest.mark.spec("SCM-23")),
        pytest.param(
            "processing_gens.native_finish_reason", "character varying(32) NULL", marks=pytest.mark.spec("SCM-24")
        ),
        pytest.param("processing_gens.prompt_tokens", "integer NULL", marks=pytest.mark.spec("SCM-25", "SCM-42")),
        pytest.param("processing_gens.completion_tokens", "integer NULL", marks=pytest.mark.spec("SCM-26", "SCM-42")),
        pytest.param("processing_gens.reasoning_tokens", "integer NULL", marks=pytest.mark.spec("SCM-27", "SCM-42")),
        pytest.param("processing_gens.charge_basis", "character varying(16) NULL", marks=pytest.mark.spec("SCM-28")),
        pytest.param(
            "processing_gens.assigned_model", "character varying(255) NULL", marks=pytest.mark.spec("SCM-29", "SCM-42")
        ),
        pytest.param(
            "processing_gens.assigned_max_context_length", "integer NULL", marks=pytest.mark.spec("SCM-30", "SCM-42")
        ),
        pytest.param("processing_gens.assigned_max_length", "integer NULL", marks=pytest.mark.spec("SCM-31", "SCM-42")),
        pytest.param("processing_gens.image_transport", "character varying(16) NULL", marks=pytest.mark.spec("SCM-32")),
        pytest.param("processing_gens.chat_refusal_rc", "character varying(32) NULL", marks=pytest.mark.spec("SCM-33")),
        pytest.param("processing_gens.settled_character_count", "integer NULL", marks=pytest.mark.spec("SCM-34")),
        pytest.param(
            "processing_gens.over_capacity_at_assignment",
            "boolean NOT NULL DEFAULT false",
            marks=pytest.mark.spec("SCM-43", "SPD-26"),
        ),
    ],
)
def test_is_defined_as(name: str, definition: str) -> None:
    table, column = name.split(".")

    with connection.cursor() as cursor:
        cursor.execute(DEFINITION, {"table": table, "column": column})
        found = cursor.fetchall()

    assert found == [(definition,)]


@pytest.mark.django_db
@pytest.mark.spec("SCM-44")
def test_defaults_fill_a_row_that_raw_sql_inserts_without_them() -> None:
    written = write_all()

    request = Request.objects.get(id=written.request_id)
    worker = Worker.objects.get(id=written.worker_id)
    generation = Generation.objects.get(id=written.generation_id)
    assert (request.is_chat, request.chat_conformance, request.chat_messages_offloaded) == (False, "strict", False)
    assert (worker.accepts_chat_jobs, worker.accepts_prompt_jobs, worker.nonconformant_replies) == (False, True, 0)
    assert generation.over_capacity_at_assignment is False


@pytest.mark.django_db
@pytest.mark.parametrize(
    "column",
    [
        pytest.param("messages", marks=pytest.mark.spec("SCM-02", "FTR-26")),
        pytest.param("chat_extras", marks=pytest.mark.spec("SCM-06", "FTR-26")),
    ],
)
def test_the_orm_leaves_a_document_in_the_database_until_it_is_asked_for(column: str) -> None:
    written = write_all()
    Request.objects.filter(id=written.request_id).update(**{column: {"role": "user"}})

    with CaptureQueriesContext(connection) as light:
        loaded = [
            Request.objects.get(id=written.request_id),
            Generation.objects.get(id=written.generation_id).request,
            Request.objects.select_for_update().get(id=written.request_id),
        ]
        loaded[0].refresh_from_db()
    with CaptureQueriesContext(connection) as asked:
        documents = [getattr(request, column) for request in loaded]

    assert len(light) == 5
    assert not [query["sql"] for query in light if column in query["sql"].replace(f"{column}_offloaded", "")]
    assert documents == [{"role": "user"}] * 3
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("column", "may_touch"),
    [
        pytest.param("messages", MAY_TOUCH_THE_CONVERSATION, marks=pytest.mark.spec("SCM-02", "FTR-26")),
        pytest.param("chat_extras", MAY_TOUCH_THE_EXTRAS, marks=pytest.mark.spec("SCM-06", "FTR-26")),
    ],
)
def test_no_raw_statement_reads_a_document_without_need(column: str, may_touch: set[str]) -> None:
    statements = {
        path.name: re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        for app in APPS
        for path in (PROJECT / app).glob("*/sql/*.sql")
    }

    named = {name for name, text in statements.items() if re.search(rf"\b{column}\b", text)}
    starred = {name for name, text in statements.items() if re.search(r"\b(SELECT|RETURNING)\s+\*|\w\.\*", text)}

    assert {"candidates.sql", "status.sql", "progress.sql", "submit_facts.sql", "claim.sql"} <= set(statements)
    assert named <= may_touch
    assert starred <= MAY_PASS_ON_WHOLE_ROWS


@pytest.mark.spec("SCM-02", "SCM-06")
def test_no_query_joins_whole_requests_past_the_manager() -> None:
    # A join names every column of the joined model: `select_related` does not ask the manager what it defers.
    sources = [
        path.relative_to(PROJECT)
        for app in APPS
        for path in (PROJECT / app).rglob("*.py")
        if re.search(r"select_related(\(\s*\)|[^\n]*[\"']request[\"'_])", path.read_text(encoding="utf-8"))
    ]

    assert sources == []
