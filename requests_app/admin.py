"""Requests and generations for moderators: all can be looked up, nothing changed, and no message text is shown."""

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from hordechat.infra.read_only_admin import ReadOnlyAdmin
from requests_app.models import Generation, PromptFilter, Request


@admin.register(Request)
class RequestAdmin(ReadOnlyAdmin):
    """What waits, what was asked; gone 20 minutes after the last thing that happened to it."""

    list_display = (
        "id", "user", "is_chat", "accepted_models", "n", "jobs", "max_length", "active", "faulted", "consumed_kudos",
        "created", "expiry",
    )  # fmt: skip
    fields = (
        "id", "user", "is_chat", "accepted_models", "n", "jobs", "max_length", "max_context_length", "active",
        "faulted", "cancelled_at", "consumed_kudos", "order_key", "ipaddr", "client_agent", "created", "expiry",
        "chat_required_features", "chat_conformance", "context_adjustments", "chat_fault_rc", "chat_fault_reason",
    )  # fmt: skip
    list_select_related = ("user",)
    ordering = ("-expiry",)
    exact_numbers = ("user_id",)
    exact_uuids = ("id",)
    search_help_text = "The request's id, or its user's."


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    """What workers made, or are making, of them."""

    list_display = (
        "id", "request_id", "worker", "model", "state", "faulted", "cancelled", "finish_reason", "kudos", "created",
        "deadline", "finished_at",
    )  # fmt: skip
    fields = (
        "id", "request_id", "worker", "model", "state", "faulted", "cancelled", "fake", "job_ttl", "created",
        "deadline", "finished_at", "kudos", "charge_basis", "finish_reason", "native_finish_reason", "prompt_tokens",
        "completion_tokens", "reasoning_tokens", "assigned_model", "assigned_max_context_length", "assigned_max_length",
        "chat_refusal_rc",
    )  # fmt: skip
    list_select_related = ("worker",)
    ordering = ("-created",)
    exact_uuids = ("id", "request_id", "worker_id")

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Model]":
        """Return generations without what was generated."""
        return super().get_queryset(request).defer("generation", "message")

    search_help_text = "The generation's id, its request's or its worker's."


@admin.register(PromptFilter)
class PromptFilterAdmin(ReadOnlyAdmin):
    """What the replacement filter looks for; `manage.py filters` tries and changes it."""

    list_display = ("id", "filter_type", "regex", "replacement", "description", "created_at")
    fields = list_display
    ordering = ("id",)
    exact_numbers = ("id", "filter_type")
    exact_texts = ("regex",)
    search_help_text = "The filter's id or type, or the whole pattern."
