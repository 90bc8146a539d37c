"""The app that owns volunteers' workers."""

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """Workers: identity, declaration, check-in."""

    name = "workers_app"
    verbose_name = "Workers"
