"""What a request keeps of a submission beside its messages: the sampling params, and the extras.

Both are JSON documents, as the database holds them and as a job's payload carries them. They hold what the client sent
and nothing else: defaults are filled in for the worker, when it pops.
"""

from hordechat.contract.chat import ChatSubmission

STREAM_PROGRESS = "stream_progress"
"""The hint among the extras that a worker should post the text it generated so far; it does not change the reply."""


def stored_params(submission: ChatSubmission) -> dict[str, object]:
    """Return the sampling keys the client sent, under the text route's names (REQ-50)."""
    sampling = submission.sampling
    effort = sampling.reasoning_effort
    sent: dict[str, object] = {
        "temperature": _as_float(sampling.temperature),
        "top_p": _as_float(sampling.top_p),
        "frequency_penalty": _as_float(sampling.frequency_penalty),
        "presence_penalty": _as_float(sampling.presence_penalty),
        "seed": sampling.seed,
        "reasoning_effort": None if effort is None else effort.value,
        # Each once: repeats count towards no limit, and a worker would get a million of them.
        "stop_sequence": list(dict.fromkeys(sampling.stop_sequence)) or None,
    }
    return {key: value for key, value in sent.items() if value is not None}


def stored_extras(submission: ChatSubmission) -> dict[str, object] | None:
    """Return tools, format and stream hint in the shape the client sent, None when there are none (TLS-28..31)."""
    choice = submission.tool_choice
    sent_format = submission.response_format
    sent: dict[str, object] = {
        "tools": [tool.document for tool in submission.tools] or None,
        "tool_choice": None if choice is None else choice.as_json(),
        "parallel_tool_calls": submission.parallel_tool_calls,
        "response_format": None if sent_format is None else sent_format.document,
        STREAM_PROGRESS: submission.is_streamed or None,
    }
    return {key: value for key, value in sent.items() if value is not None} or None


def _as_float(sent: float | None) -> float | None:
    """Make one number of 1 and 1.0, and of 0 and -0.0: a client that repeats a submission may spell either."""
    return None if sent is None else sent + 0.0
