"""The chat columns; each is nullable or has a constant default, so no row is rewritten."""

import django.contrib.postgres.fields
from django.conf import settings
from django.db import migrations, models

import hordechat.infra.fields


class Migration(migrations.Migration):
    dependencies = [
        ("requests_app", "0001_text_baseline"),
        ("workers_app", "0002_chat_columns"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="generation",
            name="assigned_max_context_length",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="assigned_max_length",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="assigned_model",
            field=models.CharField(max_length=255, null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="charge_basis",
            field=models.CharField(max_length=16, null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="chat_refusal_rc",
            field=models.CharField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="completion_tokens",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="finish_reason",
            field=models.CharField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="image_transport",
            field=models.CharField(max_length=16, null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="message",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="native_finish_reason",
            field=models.CharField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="over_capacity_at_assignment",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name="generation",
            name="prompt_tokens",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="reasoning_tokens",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="settled_character_count",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="cancelled_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="chat_conformance",
            field=models.CharField(db_default="strict", max_length=16),
        ),
        migrations.AddField(
            model_name="request",
            name="chat_extras",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="chat_fault_rc",
            field=models.CharField(max_length=32, null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="chat_fault_reason",
            field=models.CharField(max_length=1000, null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="chat_messages_offloaded",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name="request",
            name="chat_required_features",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None),
        ),
        migrations.AddField(
            model_name="request",
            name="chat_tools_temperature",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="context_adjustments",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="is_chat",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name="request",
            name="messages",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="operation_fingerprint",
            field=hordechat.infra.fields.FixedCharField(max_length=64, null=True),
        ),
        migrations.AddField(
            model_name="request",
            name="operation_key",
            field=models.UUIDField(null=True),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.CheckConstraint(
                condition=models.Q(("charge_basis__in", ["output_estimate"]), ("charge_basis", None), _connector="OR"),
                name="processing_gens_charge_basis_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="request",
            constraint=models.CheckConstraint(
                condition=models.Q(("chat_conformance__in", ["strict", "best_effort"])),
                name="waiting_prompts_conformance_known",
            ),
        ),
    ]
