"""What statistics are made of: generations that ended, until they are summed, and the sums. New tables alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("requests_app", "0008_faulted_jobs")]

    operations = [
        migrations.CreateModel(
            name="FinishedGeneration",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("finished_at", models.DateTimeField()),
                ("model", models.CharField(max_length=255)),
                ("is_chat", models.BooleanField()),
                ("outcome", models.CharField(max_length=16)),
                ("max_length", models.IntegerField()),
                ("written_tokens", models.IntegerField()),
                ("milliseconds", models.BigIntegerField()),
            ],
            options={
                "db_table": "finished_generations",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["ok", "cancelled", "faulted"])),
                        name="finished_generations_outcome_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GenerationTotal",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "period",
                        "starts_at",
                        "model",
                        "is_chat",
                        "outcome",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("period", models.CharField(max_length=8)),
                ("starts_at", models.DateTimeField()),
                ("model", models.CharField(max_length=255)),
                ("is_chat", models.BooleanField()),
                ("outcome", models.CharField(max_length=16)),
                ("generations", models.BigIntegerField()),
                ("requested_tokens", models.BigIntegerField()),
                ("written_tokens", models.BigIntegerField()),
                ("milliseconds", models.BigIntegerField()),
            ],
            options={
                "db_table": "generation_totals",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("period__in", ["minute", "hour", "all"])),
                        name="generation_totals_period_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("outcome__in", ["ok", "cancelled", "faulted"])),
                        name="generation_totals_outcome_known",
                    ),
                ],
            },
        ),
    ]
