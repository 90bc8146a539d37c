"""The baseline: users, keys, accounts, the append-only ledger, and the anonymous user."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import hordechat.infra.fields

FOLDER = Path(__file__).parent


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                ("login", models.CharField(blank=True, max_length=150, null=True)),
                ("alias", models.CharField(max_length=30)),
                ("password", models.CharField(db_default="!", max_length=128)),
                ("is_active", models.BooleanField(db_default=True, default=True)),
                ("is_staff", models.BooleanField(db_default=False, default=False)),
                ("is_superuser", models.BooleanField(db_default=False, default=False)),
                ("is_trusted", models.BooleanField(db_default=False, default=False)),
                ("is_moderator", models.BooleanField(db_default=False, default=False)),
                ("is_flagged", models.BooleanField(db_default=False, default=False)),
                ("is_service", models.BooleanField(db_default=False, default=False)),
                ("is_education", models.BooleanField(db_default=False, default=False)),
                ("is_customizer", models.BooleanField(db_default=False, default=False)),
                ("is_pseudonymous", models.BooleanField(db_default=False, default=False)),
                ("is_deleted", models.BooleanField(db_default=False, default=False)),
                ("concurrency", models.IntegerField(db_default=30, default=30)),
                ("contact", models.CharField(blank=True, max_length=500, null=True)),
                ("admin_comment", models.CharField(blank=True, max_length=500, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("last_active_at", models.DateTimeField(blank=True, null=True)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",  # noqa: E501 - Django's text
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "db_table": "users",
            },
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=10)),
                ("posted_kudos", models.DecimalField(db_default=0, decimal_places=2, max_digits=18)),
                ("held_kudos", models.DecimalField(db_default=0, decimal_places=2, max_digits=18)),
                ("minimum_kudos", models.DecimalField(decimal_places=2, max_digits=18)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "db_table": "accounts",
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key_hash", hordechat.infra.fields.FixedCharField(max_length=64)),
                ("pepper_id", models.CharField(max_length=64)),
                ("name", models.CharField(blank=True, db_default="", max_length=100)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "db_table": "api_keys",
            },
        ),
        migrations.CreateModel(
            name="Transfer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("idempotency_key", models.CharField(max_length=120)),
                ("debit_account", models.BigIntegerField()),
                ("credit_account", models.BigIntegerField()),
                ("amount", models.DecimalField(decimal_places=2, max_digits=18)),
                ("kind", models.CharField(max_length=20)),
                ("cause", models.UUIDField(null=True)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "transfers",
                "indexes": [
                    models.Index(fields=["debit_account", "id"], name="transfers_debit_statement"),
                    models.Index(fields=["credit_account", "id"], name="transfers_credit_statement"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("idempotency_key",), name="transfers_key_unique"),
                    models.CheckConstraint(condition=models.Q(("amount__gt", 0)), name="transfers_amount_positive"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["start", "tax", "reply", "burn", "forgiven"])),
                        name="transfers_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("debit_account__gt", 0), ("debit_account__in", [-1, -2, -3]), _connector="OR"
                        ),
                        name="transfers_debit_is_account",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("credit_account__gt", 0), ("credit_account__in", [-1, -2, -3]), _connector="OR"
                        ),
                        name="transfers_credit_is_account",
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(fields=("login",), name="users_login_unique"),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(("concurrency__range", (0, 500))), name="users_concurrency_in_range"
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.UniqueConstraint(fields=("user", "kind"), name="accounts_user_kind_unique"),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["balance", "escrow"])), name="accounts_kind_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(("held_kudos__gte", 0)), name="accounts_held_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=models.UniqueConstraint(fields=("key_hash",), name="api_keys_hash_unique"),
        ),
        migrations.RunSQL(
            (FOLDER / "0001_ledger_trigger.sql").read_text(encoding="utf-8"),
            reverse_sql="DROP TRIGGER transfers_append_only ON transfers; DROP FUNCTION refuse_ledger_change();",
        ),
        # Backwards there is nothing to do: the tables go.
        migrations.RunSQL(
            (FOLDER / "0001_anonymous.sql").read_text(encoding="utf-8"), reverse_sql=migrations.RunSQL.noop
        ),
    ]
