"""What a worker declares about chat; every column is nullable or has a constant default, so no row is rewritten."""

import django.contrib.postgres.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workers_app", "0001_text_baseline"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="accepts_chat_jobs",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name="worker",
            name="accepts_prompt_jobs",
            field=models.BooleanField(db_default=True),
        ),
        migrations.AddField(
            model_name="worker",
            name="chat_features",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name="worker",
            name="chat_max_context_length",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="worker",
            name="chat_max_length",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="worker",
            name="chat_model_id",
            field=models.CharField(max_length=255, null=True),
        ),
        migrations.AddField(
            model_name="worker",
            name="chat_tools_max_temperature",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="worker",
            name="image_transports",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name="worker",
            name="nonconformant_replies",
            field=models.IntegerField(db_default=0),
        ),
    ]
