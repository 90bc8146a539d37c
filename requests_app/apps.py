"""The app that owns requests, their generations and the queue."""

from django.apps import AppConfig


class RequestsConfig(AppConfig):
    """Requests: intake, queue, pop, replies, faults, expiry."""

    name = "requests_app"
    verbose_name = "Requests"
