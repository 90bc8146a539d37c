"""The switches an operator throws for the whole site."""

from requests_app.models import SiteMode


def is_in_maintenance() -> bool:
    """Return whether new requests are refused; a site nobody ever switched takes them."""
    return SiteMode.objects.filter(maintenance=True).exists()
