"""The index behind "is this shared key in use", built while in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("requests_app", "0009_statistics")]

    operations = [
        AddIndexConcurrently(
            model_name="request",
            index=models.Index(
                fields=["shared_key"],
                condition=models.Q(shared_key__isnull=False),
                name="waiting_prompts_shared_key",
            ),
        ),
    ]
