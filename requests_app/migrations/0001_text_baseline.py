"""The baseline: text requests, their queue and their generations."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Rows of these tables live for seconds: a share of the table says little about how many of them died.
VACUUM_OFTEN = """
ALTER TABLE queue_rows SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE waiting_prompts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
"""
VACUUM_AS_USUAL = """
ALTER TABLE queue_rows RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
ALTER TABLE waiting_prompts RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("workers_app", "0001_text_baseline"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Request",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("prompt", models.TextField(db_default="")),
                ("submitted_prompt", models.TextField(null=True)),
                ("params", models.JSONField(db_default={})),
                (
                    "accepted_models",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=255), db_column="models", db_default=[], size=None
                    ),
                ),
                (
                    "workers",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), db_default=[], size=None),
                ),
                ("worker_blacklist", models.BooleanField(db_default=False)),
                ("trusted_workers", models.BooleanField(db_default=False)),
                ("validated_backends", models.BooleanField(db_default=False)),
                ("slow_workers", models.BooleanField(db_default=True)),
                ("n", models.IntegerField()),
                ("jobs", models.IntegerField()),
                ("max_length", models.IntegerField()),
                ("max_context_length", models.IntegerField(db_default=2048)),
                ("active", models.BooleanField(db_default=False)),
                ("faulted", models.BooleanField(db_default=False)),
                ("consumed_kudos", models.DecimalField(db_default=0, decimal_places=2, max_digits=18)),
                ("order_key", models.BigIntegerField(null=True)),
                ("feature_mask", models.BigIntegerField(db_default=0)),
                ("ipaddr", models.GenericIPAddressField(null=True, unpack_ipv4=True)),
                ("client_agent", models.CharField(db_default="unknown:0:unknown", max_length=255)),
                ("created", models.DateTimeField()),
                ("expiry", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "db_table": "waiting_prompts",
                "base_manager_name": "objects",
                "default_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="QueueRow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "request_id", "model", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("model", models.CharField(max_length=255)),
                ("is_chat", models.BooleanField(db_default=False)),
                ("feature_mask", models.BigIntegerField(db_default=0)),
                ("order_key", models.BigIntegerField()),
                ("created", models.DateTimeField()),
                ("max_length", models.IntegerField()),
                ("max_context_length", models.IntegerField()),
                ("tools_temperature", models.FloatField(null=True)),
                ("user_id", models.BigIntegerField()),
                (
                    "request",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="requests_app.request",
                    ),
                ),
            ],
            options={
                "db_table": "queue_rows",
            },
        ),
        migrations.CreateModel(
            name="Generation",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("model", models.CharField(max_length=255)),
                ("generation", models.TextField(null=True)),
                ("state", models.CharField(db_default="ok", max_length=16)),
                ("seed", models.BigIntegerField(db_default=0)),
                ("gen_metadata", models.JSONField(db_default=[])),
                ("faulted", models.BooleanField(db_default=False)),
                ("cancelled", models.BooleanField(db_default=False)),
                ("fake", models.BooleanField(db_default=False)),
                ("job_ttl", models.IntegerField(db_default=150)),
                ("created", models.DateTimeField()),
                ("deadline", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("kudos", models.DecimalField(db_default=0, decimal_places=2, max_digits=18)),
                (
                    "worker",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="workers_app.worker"
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="requests_app.request"
                    ),
                ),
            ],
            options={
                "db_table": "processing_gens",
            },
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(fields=["expiry"], name="waiting_prompts_expiry"),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                models.OrderBy(models.F("order_key"), descending=True),
                models.F("created"),
                models.F("id"),
                condition=models.Q(("active", True), ("faulted", False), ("n__gt", 0)),
                name="waiting_prompts_in_order",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(("n__gte", 0), ("n__lte", models.F("jobs"))), name="waiting_prompts_n_in_range"
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(("jobs__gte", 1)), name="waiting_prompts_jobs_positive"
            ),
        ),
        migrations.AddIndex(
            model_name="queuerow",
            index=models.Index(
                models.F("is_chat"),
                models.F("model"),
                models.F("feature_mask"),
                models.OrderBy(models.F("order_key"), descending=True),
                models.F("created"),
                models.F("request"),
                name="queue_rows_in_order",
            ),
        ),
        migrations.AddIndex(
            model_name="generation",
            index=models.Index(
                condition=models.Q(("faulted", False), ("generation__isnull", True)),
                fields=["deadline"],
                name="processing_gens_pending",
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["ok", "censored", "csam"])), name="processing_gens_state_known"
            ),
        ),
        migrations.RunSQL(VACUUM_OFTEN, VACUUM_AS_USUAL),
    ]
