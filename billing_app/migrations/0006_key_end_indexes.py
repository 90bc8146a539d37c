"""The indexes behind "which keys ended long ago", built while in use."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("billing_app", "0005_uptime_transfers_valid")]

    operations = [
        AddIndexConcurrently(
            model_name="sharedkey",
            index=models.Index(
                fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="shared_keys_expires_at"
            ),
        ),
        AddIndexConcurrently(
            model_name="apikey",
            index=models.Index(
                fields=["revoked_at"], condition=models.Q(revoked_at__isnull=False), name="api_keys_revoked_at"
            ),
        ),
    ]
