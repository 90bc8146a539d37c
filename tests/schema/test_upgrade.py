"""A horde full of text requests takes the chat migrations without a rewrite and reads on as before."""

import pytest
from django.db.models import Model

from requests_app.models import Generation, QueueRow, Request
from tests.schema.databases import Database
from workers_app.models import Worker

FILES = """
SELECT pg_class.oid::regclass::text, pg_relation_filenode(pg_class.oid)
  FROM pg_class
 WHERE relkind IN ('r', 'i', 't')
   AND relnamespace IN ('public'::regnamespace, 'pg_toast'::regnamespace)
   AND pg_relation_filenode(pg_class.oid) IS NOT NULL
   AND pg_class.oid >= 16384
   AND pg_class.oid::regclass::text <> 'django_migrations'
"""
REQUIRED_COLUMNS = """
SELECT attrelid::regclass::text || '.' || attname, attmissingval::text
  FROM pg_attribute
 WHERE attrelid IN ('waiting_prompts'::regclass, 'workers'::regclass, 'processing_gens'::regclass)
   AND attnum > 0
   AND attnotnull
   AND NOT attisdropped
"""


@pytest.mark.spec("SCM-35")
def test_rewrites_no_table_and_no_index(text_only: Database) -> None:
    before = dict(text_only.fetch(FILES))

    text_only.migrate()

    after = dict(text_only.fetch(FILES))
    assert {"waiting_prompts", "workers", "processing_gens", "queue_rows", "waiting_prompts_in_order"} < set(before)
    assert {name: after.get(name) for name in before} == before


@pytest.mark.spec("SCM-35")
def test_new_required_columns_have_their_value_in_the_catalogue(text_only: Database) -> None:
    # PostgreSQL keeps the value old rows lack beside the column when it is a constant, and in the rows otherwise.
    before = dict(text_only.fetch(REQUIRED_COLUMNS))

    text_only.migrate()

    after = dict(text_only.fetch(REQUIRED_COLUMNS))
    assert {name: value for name, value in after.items() if name not in before} == {
        "waiting_prompts.is_chat": "{f}",
        "waiting_prompts.chat_conformance": "{strict}",
        "waiting_prompts.chat_messages_offloaded": "{f}",
        "waiting_prompts.faulted_jobs": "{0}",
        "workers.accepts_chat_jobs": "{f}",
        "workers.accepts_prompt_jobs": "{t}",
        "workers.nonconformant_replies": "{0}",
        "processing_gens.over_capacity_at_assignment": "{f}",
        "workers.speed_samples": '{"{}"}',
        "workers.suspicions": "{0}",
        "workers.uptime_seconds": "{0}",
        "workers.rewarded_uptime_seconds": "{0}",
    }


@pytest.mark.spec("SCM-46")
@pytest.mark.parametrize(
    ("model", "count", "values"),
    [
        pytest.param(
            Request,
            3000,
            {
                "is_chat": False,
                "chat_conformance": "strict",
                "messages": None,
                "operation_key": None,
                "operation_fingerprint": None,
                "context_adjustments": None,
                "chat_extras": None,
                "chat_required_features": None,
                "chat_tools_temperature": None,
                "chat_messages_offloaded": False,
                "chat_fault_reason": None,
                "chat_fault_rc": None,
                "accepted_models": ["one model"],
                "n": 1,
                "active": True,
            },
            id="request",
        ),
        pytest.param(QueueRow, 3000, {"is_chat": False, "feature_mask": 0, "model": "one model"}, id="queue row"),
        pytest.param(
            Generation,
            3000,
            {"message": None, "finish_reason": None, "charge_basis": None, "over_capacity_at_assignment": False},
            id="generation",
        ),
        pytest.param(
            Worker,
            2000,
            {
                "accepts_chat_jobs": False,
                "accepts_prompt_jobs": True,
                "chat_features": None,
                "chat_max_context_length": None,
                "chat_max_length": None,
                "chat_model_id": None,
                "chat_tools_max_temperature": None,
                "image_transports": None,
                "nonconformant_replies": 0,
            },
            id="worker",
        ),
    ],
)
def test_old_rows_read_as_text(text_only: Database, model: type[Model], count: int, values: dict[str, object]) -> None:
    text_only.migrate()

    rows = list(model._default_manager.using(text_only.alias).values(*values))

    assert len(rows) == count
    assert [row for row in rows if row != values] == []
