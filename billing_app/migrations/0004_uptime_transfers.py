"""A kind of transfer more: the constraint that lists them is added beside the old one, without looking at old rows."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing_app", "0003_shared_keys")]

    operations = [
        AddConstraintNotValid(
            model_name="transfer",
            constraint=models.CheckConstraint(
                condition=models.Q(kind__in=["start", "tax", "reply", "burn", "forgiven", "uptime", "promotion"]),
                name="transfers_kind_listed",
            ),
        ),
        migrations.RemoveConstraint(model_name="transfer", name="transfers_kind_known"),
    ]
