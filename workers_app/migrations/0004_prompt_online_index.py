"""The index behind "who serves text now", built while the table is in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("workers_app", "0003_chat_model_online_index")]

    operations = [
        AddIndexConcurrently(
            model_name="worker",
            index=models.Index(
                fields=["last_check_in"], condition=models.Q(accepts_prompt_jobs=True), name="workers_prompt_online"
            ),
        ),
    ]
