"""The estimate a client was told, for the answer to a repeated submission; nullable, so no row is rewritten."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("requests_app", "0003_operation_key_index")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="quoted_kudos",
            field=models.DecimalField(decimal_places=2, max_digits=18, null=True),
        ),
    ]
