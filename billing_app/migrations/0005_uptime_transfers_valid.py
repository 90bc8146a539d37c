"""Look at the old rows for the new list of kinds, in a transaction that blocks no writer."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class Validate(ValidateConstraint):
    """The way back leaves the constraint as the migration before made it."""

    def database_backwards(
        self,
        app_label: str,  # noqa: ARG002 - the signature is Django's
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002
        to_state: ProjectState,  # noqa: ARG002
    ) -> None:
        """Mark the constraint as not validated."""
        schema_editor.execute(
            "ALTER TABLE transfers DROP CONSTRAINT transfers_kind_listed, ADD CONSTRAINT transfers_kind_listed CHECK "
            "(kind IN ('start', 'tax', 'reply', 'burn', 'forgiven', 'uptime', 'promotion')) NOT VALID"
        )


class Migration(migrations.Migration):
    dependencies = [("billing_app", "0004_uptime_transfers")]

    operations = [Validate(model_name="transfer", name="transfers_kind_listed")]
