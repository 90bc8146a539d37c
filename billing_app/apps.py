"""The app of people, keys and kudos."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """Users, API keys, accounts and the ledger."""

    name = "billing_app"
    label = "billing_app"
    verbose_name = "People and kudos"
