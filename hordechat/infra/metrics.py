"""Every instrument of the project, in one place; names are the documented dotted ones with underscores.

With `PROMETHEUS_MULTIPROC_DIR` set, the processes of a machine add up in that folder and any of them shows the sum.
"""

import os

from prometheus_client import REGISTRY as PROCESS_REGISTRY
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

HTTP_REQUESTS = Counter("horde_http_requests", "Answered HTTP requests.", ["route", "method", "status"])
HTTP_SECONDS = Histogram(
    "horde_http_request_seconds",
    "Time to answer an HTTP request.",
    ["route", "method"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
REFUSALS = Counter("horde_refusals", "Refusals by return code.", ["rc"])
BEST_EFFORT_FAILURES = Counter("horde_best_effort_failures", "Best-effort writes to Redis that failed.", ["operation"])
POPS = Counter("horde_pops", "Answered pops.", ["outcome"])
REPLIES = Counter("horde_replies", "Ends of generations.", ["outcome"])
QUEUE_WAIT_SECONDS = Histogram(
    "horde_text_queue_wait_seconds",
    "Time from a request's creation to its assignment.",
    ["chat"],
    buckets=(0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1200),
)
MAX_LENGTH_LOWERED = Counter(
    "horde_chat_max_length_lowered",
    "Chat submissions whose output length was lowered to the longest a serving worker gives.",
    ["requested_bucket", "declared_bucket", "dry_run"],
)
CONTEXT_FIT = Counter(
    "horde_text_context_fit",
    "Sized submissions by the mode they asked for and what became of them.",
    ["mode", "outcome"],
)
LEASE_CAPACITY_LIMITED = Counter(
    "horde_pop_lease_capacity_limited",
    "Pops by a chat worker whose measured speed caps the output it is offered below what it declares.",
    ["gentype"],
)
GATE_SHADOW_ASSIGNMENTS = Counter(
    "horde_text_gate_shadow_assignments",
    "Text jobs handed to a worker that does not finish them within a lease at its speed.",
    ["worker_trusted", "size_bucket"],
)
GATE_SHADOW_OUTCOMES = Counter(
    "horde_text_gate_shadow_outcomes",
    "How text jobs ended that were handed to a worker which does not finish them within a lease at its speed.",
    ["worker_trusted", "size_bucket", "outcome"],
)
GATE_SHADOW_SERVICE_SECONDS = Histogram(
    "horde_text_gate_shadow_service_seconds",
    "Time from pop to submit of such jobs that were completed.",
    ["worker_trusted", "size_bucket"],
    buckets=(1, 5, 10, 20, 30, 60, 90, 120, 150, 180, 210, 300),
)
CHAT_WORKER_FAULTS = Counter(
    "horde_chat_worker_faults", "Chat jobs given back, by the reason their worker sent.", ["reason", "worker_trusted"]
)
EMPTY_REPLIES = Counter("horde_text_empty_generations", "Replies in which the model wrote nothing.", ["model"])
STALE_ABORTS = Counter(
    "horde_text_stale_aborts", "Generations aborted because their lease lapsed.", ["worker_trusted", "chat"]
)
EXPIRED_REQUESTS = Counter("horde_requests_expired", "Requests deleted at their expiry.", ["chat", "outcome"])
LAPSED_HOLDS = Counter("horde_holds_lapsed", "Holds freed because nobody ended them in their time.")
BEAT_RUNS = Counter("horde_beat_runs", "Runs of beat tasks.", ["task", "outcome"])
BEAT_LAST_RUN = Gauge(
    "horde_beat_last_run_timestamp_seconds", "When a beat task last finished.", ["task"], multiprocess_mode="mostrecent"
)
BEAT_BACKLOG = Gauge(
    "horde_beat_backlog", "Overdue rows a beat task has to work off.", ["task"], multiprocess_mode="mostrecent"
)
MODEL_REFERENCE_REFRESHES = Counter(
    "horde_model_reference_refreshes", "Tries to read the model reference anew.", ["outcome"]
)
MODEL_REFERENCE_REFUSED_ENTRIES = Counter(
    "horde_model_reference_refused_entries", "Entries of a read model reference that are no models."
)


def exposition() -> bytes:
    """Return all instruments in Prometheus' text format, those of this machine's other processes included."""
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return generate_latest(PROCESS_REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the package has no annotation there
    return generate_latest(registry)
