"""The indexes behind "what do these users have waiting" and "did this worker get a fake", built while in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("requests_app", "0006_waiting_indexes")]

    operations = [
        AddIndexConcurrently(
            model_name="queuerow",
            index=models.Index(
                "user_id", models.F("order_key").desc(), "created", "request", name="queue_rows_of_user"
            ),
        ),
        AddIndexConcurrently(
            model_name="generation",
            index=models.Index(
                fields=["request", "worker"], condition=models.Q(fake=True), name="processing_gens_fakes"
            ),
        ),
    ]
