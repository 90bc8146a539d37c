"""The baseline: workers that take text jobs."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("bridge_agent", models.CharField(db_default="unknown:0:unknown", max_length=1000)),
                (
                    "served_models",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=255), db_column="models", db_default=[], size=None
                    ),
                ),
                ("threads", models.IntegerField(db_default=1)),
                ("max_length", models.IntegerField(db_default=512)),
                ("max_context_length", models.IntegerField(db_default=2048)),
                ("nsfw", models.BooleanField(db_default=True)),
                ("maintenance", models.BooleanField(db_default=False)),
                ("paused", models.BooleanField(db_default=False)),
                ("ipaddr", models.GenericIPAddressField(null=True, unpack_ipv4=True)),
                ("created", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("last_check_in", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("requests_fulfilled", models.IntegerField(db_default=0)),
                ("aborted_jobs", models.IntegerField(db_default=0)),
                ("uncompleted_jobs", models.IntegerField(db_default=0)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "db_table": "workers",
                "constraints": [models.UniqueConstraint(fields=("name",), name="workers_name_unique")],
            },
        ),
    ]
