"""How many of a request's generations were given up, counted in its own row; a constant default rewrites no row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("requests_app", "0007_dispatch_indexes")]

    operations = [
        migrations.AddField(model_name="request", name="faulted_jobs", field=models.IntegerField(db_default=0)),
    ]
