"""What dispatch keeps of a worker: its speed, its time online, what it gave up and is told; no row is rewritten."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
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
        migrations.AddField("worker", "suspicions", models.IntegerField(db_default=0)),
        migrations.AddField("worker", "uptime_seconds", models.BigIntegerField(db_default=0)),
        migrations.CreateModel(
            name="WorkerMessage",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("message", models.TextField()),
                ("origin", models.CharField(db_default="", max_length=255)),
                ("created", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expiry", models.DateTimeField()),
                (
                    "worker",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="workers_app.worker",
                    ),
                ),
            ],
            options={
                "db_table": "worker_messages",
                "indexes": [models.Index(fields=["expiry"], name="worker_messages_expiry")],
            },
        ),
    ]
