"""Volunteers' workers: who runs them, what they declared at their latest pop, what they did."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from hordechat.contract.limits import (
    DEFAULT_CONTEXT_TOKENS,
    MAX_BRIDGE_AGENT_CHARACTERS,
    MAX_MODEL_NAME_CHARACTERS,
    MAX_WORKER_NAME_CHARACTERS,
)


class Worker(models.Model):
    """One program of a volunteer that pops and serves jobs.

    The chat columns hold the declaration of its latest pop; a pop without `chat_jobs` clears them (DCL-05).
    """

    id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=MAX_WORKER_NAME_CHARACTERS)
    bridge_agent = models.CharField(max_length=MAX_BRIDGE_AGENT_CHARACTERS, db_default="unknown:0:unknown")
    served_models = ArrayField(
        models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS), db_default=[], db_column="models"
    )
    threads = models.IntegerField(db_default=1)
    max_length = models.IntegerField(db_default=512)
    max_context_length = models.IntegerField(db_default=DEFAULT_CONTEXT_TOKENS)
    nsfw = models.BooleanField(db_default=True)
    maintenance = models.BooleanField(db_default=False)
    maintenance_message = models.CharField(max_length=300, null=True)  # noqa: DJ001 - null: the usual words
    paused = models.BooleanField(db_default=False)
    ipaddr = models.GenericIPAddressField(null=True, unpack_ipv4=True)
    created = models.DateTimeField(db_default=Now())
    last_check_in = models.DateTimeField(db_default=Now())
    requests_fulfilled = models.IntegerField(db_default=0)
    aborted_jobs = models.IntegerField(db_default=0)
    """Jobs given up within the hour that began at `aborts_since`."""
    aborts_since = models.DateTimeField(null=True)
    uncompleted_jobs = models.IntegerField(db_default=0)

    accepts_chat_jobs = models.BooleanField(db_default=False)
    accepts_prompt_jobs = models.BooleanField(db_default=True)
    chat_features = ArrayField(models.TextField(), null=True)
    chat_max_context_length = models.IntegerField(null=True)
    chat_max_length = models.IntegerField(null=True)
    chat_model_id = models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS, null=True)  # noqa: DJ001 - null is no declaration
    chat_tools_max_temperature = models.FloatField(null=True)
    image_transports = ArrayField(models.TextField(), null=True)
    nonconformant_replies = models.IntegerField(db_default=0)

    speed_samples = ArrayField(models.FloatField(), db_default=[])
    """Tokens a second of its latest replies, the newest first."""
    speed = models.FloatField(null=True)
    """Their mean; null: unmeasured."""
    uptime_seconds = models.BigIntegerField(db_default=0)
    rewarded_uptime_seconds = models.BigIntegerField(db_default=0)
    """Up to where its time online was rewarded."""
    suspicions = models.IntegerField(db_default=0)
    """Replies too fast to be true, and hours with too many jobs given up."""

    class Meta:
        db_table = "workers"
        constraints = [models.UniqueConstraint(fields=["name"], name="workers_name_unique")]
        indexes = [
            # Who serves this model for chat now: asked at every submit and status.
            models.Index(
                fields=["chat_model_id", "last_check_in"],
                condition=models.Q(accepts_chat_jobs=True),
                name="workers_chat_model_online",
            ),
            # The same for text, whatever the models: asked at every text submit.
            models.Index(
                fields=["last_check_in"], condition=models.Q(accepts_prompt_jobs=True), name="workers_prompt_online"
            ),
        ]

    def __str__(self) -> str:
        """Return the name, which is unique."""
        return self.name


class WorkerMessage(models.Model):
    """What an operator tells a worker, or all of them, with every pop until it expires."""

    id = models.UUIDField(primary_key=True)
    worker = models.ForeignKey(Worker, on_delete=models.CASCADE, null=True, related_name="+")
    """Null: every worker."""
    message = models.TextField()
    origin = models.CharField(max_length=255, db_default="")
    created = models.DateTimeField(db_default=Now())
    expiry = models.DateTimeField()

    class Meta:
        db_table = "worker_messages"
        indexes = [models.Index(fields=["expiry"], name="worker_messages_expiry")]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)
