"""Workers for moderators: all can be looked up, nothing changed."""

from django.contrib import admin

from hordechat.infra.read_only_admin import ReadOnlyAdmin
from workers_app.models import Worker


@admin.register(Worker)
class WorkerAdmin(ReadOnlyAdmin):
    """Who serves, and what they declared at their latest pop."""

    list_display = (
        "name", "user", "chat_model_id", "accepts_chat_jobs", "accepts_prompt_jobs", "maintenance", "paused",
        "requests_fulfilled", "aborted_jobs", "last_check_in",
    )  # fmt: skip
    fields = (
        "id", "name", "user", "bridge_agent", "threads", "served_models", "max_length", "max_context_length", "nsfw",
        "maintenance", "paused", "ipaddr", "created", "last_check_in", "requests_fulfilled", "aborted_jobs",
        "uncompleted_jobs", "nonconformant_replies", "accepts_chat_jobs", "accepts_prompt_jobs", "chat_model_id",
        "chat_features", "chat_max_context_length", "chat_max_length", "chat_tools_max_temperature",
        "image_transports",
    )  # fmt: skip
    list_select_related = ("user",)
    ordering = ("name",)
    exact_numbers = ("user_id",)
    exact_texts = ("name",)
    exact_uuids = ("id",)
    search_help_text = "The worker's whole name or id, or its owner's id."
