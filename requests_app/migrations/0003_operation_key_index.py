"""One request for each user and operation key: the index, built while the table is in use.

A concurrent build cannot run inside a transaction, and one that fails leaves an invalid index behind. This step drops
such an index before it builds, and builds nothing where a valid one stands: it can be run again (SCM-37..39, SCM-45).
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

NAME = "ix_waiting_prompts_user_operation_key"
IS_INVALID = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
DROP = f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}"
BUILD = f"""
    CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS {NAME}
        ON waiting_prompts (user_id, operation_key)
     WHERE operation_key IS NOT NULL
"""


def build(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute(IS_INVALID, [NAME])
        if (row := cursor.fetchone()) and row[0]:
            cursor.execute(DROP)
        cursor.execute(BUILD)


def drop(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute(DROP)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("requests_app", "0002_chat_columns")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(build, drop)],
            state_operations=[
                migrations.AddConstraint(
                    model_name="request",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(operation_key__isnull=False), fields=("user", "operation_key"), name=NAME
                    ),
                ),
            ],
        ),
    ]
