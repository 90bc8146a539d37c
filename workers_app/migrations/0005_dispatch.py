"""What dispatch keeps of a worker: how fast it is, how long it was online, what it gave up; no row is rewritten."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("workers_app", "0004_prompt_online_index")]

    operations = [
        migrations.AddField("worker", "aborts_since", models.DateTimeField(null=True)),
        migrations.AddField("worker", "maintenance_message", models.CharField(max_length=300, null=True)),
        migrations.AddField("worker", "rewarded_uptime_seconds", models.BigIntegerField(db_default=0)),
        migrations.AddField("worker", "speed", models.FloatField(null=True)),
        migrations.AddField(
            "worker",
            "speed_samples",
            django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), db_default=[], size=None),
        ),
        migrations.AddField("worker", "uptime_seconds", models.BigIntegerField(db_default=0)),
    ]
