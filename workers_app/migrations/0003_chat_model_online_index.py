"""The index behind "who serves this model for chat now", built while the table is in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("workers_app", "0002_chat_columns")]

    operations = [
        AddIndexConcurrently(
            model_name="worker",
            index=models.Index(
                fields=["chat_model_id", "last_check_in"],
                condition=models.Q(accepts_chat_jobs=True),
                name="workers_chat_model_online",
            ),
        ),
    ]
