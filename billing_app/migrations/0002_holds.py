"""Holds, which resolve once, and the kind of transfer that pays a promoted owner's escrow out."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

FOLDER = Path(__file__).parent


class Migration(migrations.Migration):
    dependencies = [
        ("billing_app", "0001_baseline"),
    ]

    operations = [
        migrations.CreateModel(
            name="Hold",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=100)),
                ("kudos", models.DecimalField(decimal_places=2, max_digits=18)),
                ("cause", models.UUIDField()),
                ("placed_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
                ("resolved_at", models.DateTimeField(null=True)),
                ("resolution", models.CharField(max_length=10, null=True)),
                ("settled_kudos", models.DecimalField(db_default=0, decimal_places=2, max_digits=18)),
                (
                    "account",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="billing_app.account"),
                ),
            ],
            options={
                "db_table": "holds",
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False), ("resolved_at__isnull", True)),
                        fields=["expires_at"],
                        name="holds_to_lapse",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("key",), name="holds_key_unique"),
                    models.CheckConstraint(condition=models.Q(("kudos__gt", 0)), name="holds_kudos_positive"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("resolution__isnull", True),
                            ("resolution__in", ["settled", "voided", "lapsed"]),
                            _connector="OR",
                        ),
                        name="holds_resolution_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("resolution__isnull", True), ("resolved_at__isnull", True)),
                            models.Q(("resolution__isnull", False), ("resolved_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="holds_resolved_with_moment",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("settled_kudos", 0),
                            models.Q(
                                ("resolution", "settled"),
                                ("resolution__isnull", False),
                                ("settled_kudos__gt", 0),
                                ("settled_kudos__lte", models.F("kudos")),
                            ),
                            _connector="OR",
                        ),
                        name="holds_settled_within_amount",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            (FOLDER / "0002_holds_trigger.sql").read_text(encoding="utf-8"),
            reverse_sql="DROP TRIGGER holds_resolve_once ON holds; DROP FUNCTION refuse_hold_change();",
        ),
        # The wider check reads the table and rewrites nothing; back again it refuses while a promotion is on record.
        migrations.RemoveConstraint(model_name="transfer", name="transfers_kind_known"),
        migrations.AddConstraint(
            model_name="transfer",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["start", "tax", "reply", "burn", "forgiven", "promotion"])),
                name="transfers_kind_known",
            ),
        ),
    ]
