"""Requests, the queue they wait in, and the generations workers make of them."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from billing_app.rules.accounts import ANONYMOUS_USER_ID
from hordechat.contract.limits import (
    DEFAULT_CLIENT_AGENT,
    DEFAULT_CONTEXT_TOKENS,
    MAX_CLIENT_AGENT_CHARACTERS,
    MAX_FAULT_REASON_CHARACTERS,
    MAX_FILTER_DESCRIPTION_CHARACTERS,
    MAX_FILTER_PATTERN_CHARACTERS,
    MAX_FILTER_REPLACEMENT_CHARACTERS,
    MAX_MODEL_NAME_CHARACTERS,
    MAX_NATIVE_FINISH_REASON_CHARACTERS,
    TEXT_JOB_LEASE_SECONDS,
)
from hordechat.contract.vocabulary import ChargeBasis, Conformance, GenerationState
from hordechat.infra.fields import FixedCharField
from requests_app.rules.statistics import GenerationOutcome, Period

CODE_CHARACTERS = 32
FINGERPRINT_CHARACTERS = 64


def kudos_field() -> "models.DecimalField[object, object]":
    """Return a column for an amount of kudos that starts at nothing."""
    return models.DecimalField(max_digits=18, decimal_places=2, db_default=0)


class LightRequests(models.Manager["Request"]):
    """Leaves the conversation in the database until it is asked for: it can be 1 MiB, and stands there thrice."""

    def get_queryset(self) -> "models.QuerySet[Request]":
        """Return requests without their texts."""
        return super().get_queryset().defer("messages", "chat_extras", "prompt", "submitted_prompt")


class Request(models.Model):
    """What a client asked: `waiting_prompts`, from its activation to its expiry."""

    id = models.UUIDField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    prompt = models.TextField(db_default="")
    submitted_prompt = models.TextField(null=True)  # noqa: DJ001 - null: not recorded
    params = models.JSONField(db_default={})
    accepted_models = ArrayField(
        models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS), db_default=[], db_column="models"
    )
    workers = ArrayField(models.UUIDField(), db_default=[])
    worker_blacklist = models.BooleanField(db_default=False)
    trusted_workers = models.BooleanField(db_default=False)
    validated_backends = models.BooleanField(db_default=False)
    slow_workers = models.BooleanField(db_default=True)
    n = models.IntegerField()
    """Slots nobody took yet."""
    jobs = models.IntegerField()
    """Slots asked for."""
    max_length = models.IntegerField()
    max_context_length = models.IntegerField(db_default=DEFAULT_CONTEXT_TOKENS)
    active = models.BooleanField(db_default=False)
    faulted = models.BooleanField(db_default=False)
    faulted_jobs = models.IntegerField(db_default=0)
    """Generations given up, fakes aside; one too many faults the request (FLW-26).

    Kept here because a fault that waited for this row would count them as they were before it waited.
    """
    consumed_kudos = kudos_field()
    quoted_kudos = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    """The estimate its client was told, which a repeated submission is told again."""
    upfront_kudos = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    """What is held of its requester's balance, under the key `upfront:<id>`; null: nothing."""
    shared_key = models.ForeignKey(
        "billing_app.SharedKey", on_delete=models.PROTECT, null=True, db_index=False, related_name="+"
    )
    """The shared key it was submitted under."""
    api_key_id = models.BigIntegerField(null=True)
    """The API key it was submitted under. No foreign key: each insert would lock the anonymous key's row."""
    proxied_account = models.CharField(max_length=255, null=True)  # noqa: DJ001 - null: not sent
    webhook = models.CharField(max_length=1024, null=True)  # noqa: DJ001 - null: not sent
    order_key = models.BigIntegerField(null=True)
    """Place in the queue, larger first; fixed at activation."""
    feature_mask = models.BigIntegerField(db_default=0)
    """The needs as bits, for its queue rows; derived once, with the needs."""
    ipaddr = models.GenericIPAddressField(null=True, unpack_ipv4=True)
    client_agent = models.CharField(max_length=MAX_CLIENT_AGENT_CHARACTERS, db_default=DEFAULT_CLIENT_AGENT)
    created = models.DateTimeField()
    expiry = models.DateTimeField()

    cancelled_at = models.DateTimeField(null=True)
    is_chat = models.BooleanField(db_default=False)
    messages = models.JSONField(null=True)
    operation_key = models.UUIDField(null=True)
    operation_fingerprint = FixedCharField(max_length=FINGERPRINT_CHARACTERS, null=True)
    context_adjustments = models.JSONField(null=True)
    chat_extras = models.JSONField(null=True)
    chat_required_features = ArrayField(models.TextField(), null=True)
    chat_conformance = models.CharField(max_length=16, db_default=Conformance.STRICT.value)
    chat_tools_temperature = models.FloatField(null=True)
    chat_messages_offloaded = models.BooleanField(db_default=False)
    chat_fault_reason = models.CharField(max_length=MAX_FAULT_REASON_CHARACTERS, null=True)  # noqa: DJ001 - null: none
    chat_fault_rc = models.CharField(max_length=CODE_CHARACTERS, null=True)  # noqa: DJ001 - null: none

    objects = LightRequests()

    class Meta:
        db_table = "waiting_prompts"
        default_manager_name = "objects"
        base_manager_name = "objects"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(n__gte=0, n__lte=models.F("jobs")), name="waiting_prompts_n_in_range"
            ),
            models.CheckConstraint(condition=models.Q(jobs__gte=1), name="waiting_prompts_jobs_positive"),
            models.CheckConstraint(
                condition=models.Q(chat_conformance__in=[value.value for value in Conformance]),
                name="waiting_prompts_conformance_known",
            ),
            models.UniqueConstraint(
                fields=["user", "operation_key"],
                condition=models.Q(operation_key__isnull=False),
                name="ix_waiting_prompts_user_operation_key",
            ),
        ]
        indexes = [
            models.Index(fields=["expiry"], name="waiting_prompts_expiry"),
            # A status counts the requests ahead of its own from here, at most a thousand.
            models.Index(
                models.F("order_key").desc(),
                "created",
                "id",
                condition=models.Q(n__gt=0, active=True, faulted=False),
                name="waiting_prompts_in_order",
            ),
            # A submit counts what its user has waiting; what is answered stays for a while and is not read.
            models.Index(
                fields=["user"],
                condition=models.Q(n__gt=0, active=True, faulted=False),
                name="waiting_prompts_of_user",
            ),
            # Whether a shared key is in use, and the foreign key's own check when one is deleted.
            models.Index(
                fields=["shared_key"],
                condition=models.Q(shared_key__isnull=False),
                name="waiting_prompts_shared_key",
            ),
        ]

    def __str__(self) -> str:
        """Return the id: the text is the client's business."""
        return str(self.id)


class SiteMode(models.Model):
    """The one row of switches an operator throws for the whole site; without it all of them are off."""

    id = models.SmallIntegerField(primary_key=True, db_default=1)
    maintenance = models.BooleanField(db_default=False)
    """Whether new requests are refused."""

    class Meta:
        db_table = "site_modes"
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="site_modes_one_row")]

    def __str__(self) -> str:
        """Name the row."""
        return "site modes"


class PromptFilter(models.Model):
    """A pattern the replacement filter looks for in texts, and what it puts in its place."""

    regex = models.CharField(max_length=MAX_FILTER_PATTERN_CHARACTERS)
    filter_type = models.IntegerField()
    replacement = models.CharField(max_length=MAX_FILTER_REPLACEMENT_CHARACTERS, blank=True, db_default="")
    description = models.CharField(max_length=MAX_FILTER_DESCRIPTION_CHARACTERS, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "prompt_filters"
        constraints = [
            models.UniqueConstraint(fields=["filter_type", "regex"], name="prompt_filters_unique"),
            models.CheckConstraint(condition=models.Q(filter_type__range=(10, 29)), name="prompt_filters_type_known"),
        ]

    def __str__(self) -> str:
        """Name the filter."""
        return f"filter {self.pk}"


class QueueRow(models.Model):
    """A request that waits for work, once for each model it accepts; gone when nothing waits.

    Narrow and short-lived, so that a pop reads an index in queue order and nothing else.
    """

    pk = models.CompositePrimaryKey("request_id", "model")
    request = models.ForeignKey(Request, on_delete=models.CASCADE, db_index=False, related_name="+")
    model = models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS)
    """An acceptable model; empty for a text request that takes any."""
    is_chat = models.BooleanField(db_default=False)
    feature_mask = models.BigIntegerField(db_default=0)
    """One bit for each capability the request needs."""
    order_key = models.BigIntegerField()
    created = models.DateTimeField()
    max_length = models.IntegerField()
    max_context_length = models.IntegerField()
    tools_temperature = models.FloatField(null=True)
    user_id = models.BigIntegerField()

    class Meta:
        db_table = "queue_rows"
        indexes = [
            models.Index(
                "is_chat",
                "model",
                "feature_mask",
                models.F("order_key").desc(),
                "created",
                "request",
                name="queue_rows_in_order",
            ),
            # What priority users and a worker's own owner have waiting.
            models.Index("user_id", models.F("order_key").desc(), "created", "request", name="queue_rows_of_user"),
            # The anonymous user is counted by model.
            models.Index(fields=["model"], condition=models.Q(user_id=ANONYMOUS_USER_ID), name="queue_rows_anonymous"),
        ]

    def __str__(self) -> str:
        """Name the request and the model."""
        return f"{self.request_id} for {self.model or 'any model'}"


class Generation(models.Model):
    """One worker's try at one slot of a request: `processing_gens`.

    Pending, stored, faulted or cancelled: the state is derived from `generation`, `faulted` and `cancelled`.
    """

    id = models.UUIDField(primary_key=True)
    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="+")
    worker = models.ForeignKey("workers_app.Worker", on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS)
    generation = models.TextField(null=True)  # noqa: DJ001 - null: pending; an empty text is a reply
    state = models.CharField(max_length=16, db_default=GenerationState.OK.value)
    seed = models.BigIntegerField(db_default=0)
    gen_metadata = models.JSONField(db_default=[])
    faulted = models.BooleanField(db_default=False)
    cancelled = models.BooleanField(db_default=False)
    fake = models.BooleanField(db_default=False)
    job_ttl = models.IntegerField(db_default=TEXT_JOB_LEASE_SECONDS)
    created = models.DateTimeField()
    deadline = models.DateTimeField()
    """When the lease ends: `created` and `job_ttl` together, for the index."""
    finished_at = models.DateTimeField(null=True)
    kudos = kudos_field()
    """What the worker's owner was paid."""

    message = models.JSONField(null=True)
    finish_reason = models.CharField(max_length=32, null=True)  # noqa: DJ001 - null: not a chat reply
    native_finish_reason = models.CharField(max_length=MAX_NATIVE_FINISH_REASON_CHARACTERS, null=True)  # noqa: DJ001
    prompt_tokens = models.IntegerField(null=True)
    completion_tokens = models.IntegerField(null=True)
    reasoning_tokens = models.IntegerField(null=True)
    charge_basis = models.CharField(max_length=16, null=True)  # noqa: DJ001 - null: not charged
    assigned_model = models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS, null=True)  # noqa: DJ001 - null: text job
    assigned_max_context_length = models.IntegerField(null=True)
    assigned_max_length = models.IntegerField(null=True)
    image_transport = models.CharField(max_length=16, null=True)  # noqa: DJ001 - null: sent inline
    chat_refusal_rc = models.CharField(max_length=CODE_CHARACTERS, null=True)  # noqa: DJ001 - null: none
    settled_character_count = models.IntegerField(null=True)
    over_capacity_at_assignment = models.BooleanField(db_default=False)

    class Meta:
        db_table = "processing_gens"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=[value.value for value in GenerationState]),
                name="processing_gens_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(charge_basis__in=[value.value for value in ChargeBasis])
                | models.Q(charge_basis=None),
                name="processing_gens_charge_basis_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["deadline"],
                condition=models.Q(generation__isnull=True, faulted=False),
                name="processing_gens_pending",
            ),
            # Which requests a paused worker got fakes of.
            models.Index(fields=["request", "worker"], condition=models.Q(fake=True), name="processing_gens_fakes"),
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.id)


class FinishedGeneration(models.Model):
    """What statistics take of one generation that ended, written by whoever ended it, until the roll-up has summed it.

    No foreign keys: requests and their generations vanish. No index but the key: every reply writes a row.
    """

    finished_at = models.DateTimeField()
    model = models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS)
    """As it was served."""
    is_chat = models.BooleanField()
    outcome = models.CharField(max_length=16)
    max_length = models.IntegerField()
    """The tokens that were asked for."""
    written_tokens = models.IntegerField()
    """The tokens of its reply, estimated as for its price; 0 unless the outcome is ok."""
    milliseconds = models.BigIntegerField()
    """From the pop to the end."""

    class Meta:
        db_table = "finished_generations"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(outcome__in=[outcome.value for outcome in GenerationOutcome]),
                name="finished_generations_outcome_known",
            ),
        ]

    def __str__(self) -> str:
        """Name the row."""
        return f"finished generation {self.pk}"


class GenerationTotal(models.Model):
    """What the generations add up to that ended in one way, of one model and family, within one period."""

    pk = models.CompositePrimaryKey("period", "starts_at", "model", "is_chat", "outcome")
    period = models.CharField(max_length=8)
    starts_at = models.DateTimeField()
    model = models.CharField(max_length=MAX_MODEL_NAME_CHARACTERS)
    """As the reference lists it, or the name that stands for all it does not list."""
    is_chat = models.BooleanField()
    outcome = models.CharField(max_length=16)
    generations = models.BigIntegerField()
    requested_tokens = models.BigIntegerField()
    written_tokens = models.BigIntegerField()
    milliseconds = models.BigIntegerField()

    class Meta:
        db_table = "generation_totals"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(period__in=[period.value for period in Period]),
                name="generation_totals_period_known",
            ),
            models.CheckConstraint(
                condition=models.Q(outcome__in=[outcome.value for outcome in GenerationOutcome]),
                name="generation_totals_outcome_known",
            ),
        ]

    def __str__(self) -> str:
        """Name what is summed."""
        return f"{self.outcome} of {self.model}, {self.period} {self.starts_at}"
