"""What intake keeps of a request beside the chat columns, the site's switches and the filters; no row is rewritten."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("billing_app", "0003_shared_keys"),
        ("requests_app", "0004_quoted_kudos"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="api_key_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="proxied_account",
            field=models.CharField(max_length=255, null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="shared_key",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="billing_app.sharedkey",
            ),
        ),
        migrations.AddField(
            model_name="request",
            name="upfront_kudos",
            field=models.DecimalField(decimal_places=2, max_digits=18, null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="webhook",
            field=models.CharField(max_length=1024, null=True),
        ),
        migrations.CreateModel(
            name="PromptFilter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("regex", models.CharField(max_length=1000)),
                ("filter_type", models.IntegerField()),
                ("replacement", models.CharField(blank=True, db_default="", max_length=255)),
                ("description", models.CharField(blank=True, db_default="", max_length=500)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "prompt_filters",
                "constraints": [
                    models.UniqueConstraint(fields=("filter_type", "regex"), name="prompt_filters_unique"),
                    models.CheckConstraint(
                        condition=models.Q(("filter_type__range", (10, 29))), name="prompt_filters_type_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SiteMode",
            fields=[
                ("id", models.SmallIntegerField(db_default=1, primary_key=True, serialize=False)),
                ("maintenance", models.BooleanField(db_default=False)),
            ],
            options={
                "db_table": "site_modes",
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="site_modes_one_row")],
            },
        ),
    ]
