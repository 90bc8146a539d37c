"""Keys that others may ask with, and the passkeys of services that forward their clients' addresses."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import hordechat.infra.fields


class Migration(migrations.Migration):
    dependencies = [
        ("billing_app", "0002_holds"),
    ]

    operations = [
        migrations.CreateModel(
            name="ProxyPasskey",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("passkey_hash", hordechat.infra.fields.FixedCharField(max_length=64)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "proxy_passkeys",
            },
        ),
        migrations.CreateModel(
            name="SharedKey",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("name", models.CharField(blank=True, db_default="", max_length=255)),
                ("left_kudos", models.DecimalField(decimal_places=2, max_digits=18, null=True)),
                ("used_kudos", models.DecimalField(db_default=0, decimal_places=2, max_digits=18)),
                ("max_text_tokens", models.IntegerField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "db_table": "shared_keys",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("left_kudos__isnull", True), ("left_kudos__gte", 0), _connector="OR"),
                        name="shared_keys_left_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("used_kudos__gte", 0)), name="shared_keys_used_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_text_tokens__isnull", True), ("max_text_tokens__gte", 0), _connector="OR"
                        ),
                        name="shared_keys_tokens_not_negative",
                    ),
                ],
            },
        ),
    ]
