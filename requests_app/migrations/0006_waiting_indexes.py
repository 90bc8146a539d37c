"""What waits of one user, and of everybody without a key by model: indexes, built while the tables are in use.

A concurrent build cannot run inside a transaction, and one that fails leaves an invalid index behind. Each step drops
such an index before it builds, and builds nothing where a valid one stands: it can be run again.
"""

from functools import partial

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

OF_USER = "waiting_prompts_of_user"
ANONYMOUS = "queue_rows_anonymous"
IS_INVALID = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
BUILDS = {
    OF_USER: f"""
        CREATE INDEX CONCURRENTLY IF NOT EXISTS {OF_USER}
            ON waiting_prompts (user_id)
         WHERE n > 0 AND active AND NOT faulted
    """,
    ANONYMOUS: f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {ANONYMOUS} ON queue_rows (model) WHERE user_id = 0",
}


def build(apps: StateApps, editor: BaseDatabaseSchemaEditor, *, name: str) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute(IS_INVALID, [name])
        if (row := cursor.fetchone()) and row[0]:
            drop(apps, editor, name=name)
        cursor.execute(BUILDS[name])


def drop(apps: StateApps, editor: BaseDatabaseSchemaEditor, *, name: str) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("requests_app", "0005_admission")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(partial(build, name=OF_USER), partial(drop, name=OF_USER))],
            state_operations=[
                migrations.AddIndex(
                    model_name="request",
                    index=models.Index(
                        condition=models.Q(n__gt=0, active=True, faulted=False), fields=["user"], name=OF_USER
                    ),
                ),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(partial(build, name=ANONYMOUS), partial(drop, name=ANONYMOUS))],
            state_operations=[
                migrations.AddIndex(
                    model_name="queuerow",
                    index=models.Index(condition=models.Q(user_id=0), fields=["model"], name=ANONYMOUS),
                ),
            ],
        ),
    ]
