"""What of the chat contract this server does not serve yet: refused by name, never accepted and ignored."""

from collections.abc import Callable, Mapping

from hordechat.contract.chat import ChatSubmission

NOT_YET_SERVED: Mapping[str, Callable[[ChatSubmission], bool]] = {
    "stream": lambda sent: sent.is_streamed,
    "tools": lambda sent: bool(sent.tools),
    "response_format": lambda sent: sent.response_format is not None,
    "seed": lambda sent: sent.sampling.seed is not None,
    "frequency_penalty": lambda sent: bool(sent.sampling.frequency_penalty),
    "presence_penalty": lambda sent: bool(sent.sampling.presence_penalty),
    "reasoning_effort": lambda sent: sent.sampling.reasoning_effort is not None,
    "horde.only": lambda sent: sent.horde.only is not None,
    "horde.ignore": lambda sent: sent.horde.ignore is not None,
    "horde.trusted_workers": lambda sent: sent.horde.trusted_workers,
    "horde.validated_backends": lambda sent: sent.horde.validated_backends,
    "horde.slow_workers": lambda sent: not sent.horde.slow_workers,
    "horde.conformance": lambda sent: sent.horde.conformance != "strict",
    "horde.max_context_length": lambda sent: sent.horde.max_context_length is not None,
    "horde.context_fit": lambda sent: sent.horde.context_fit != "truncate_oldest",
    "horde.max_kudos": lambda sent: sent.horde.max_kudos is not None,
    "horde.dry_run": lambda sent: sent.horde.dry_run,
    "horde.operation_key": lambda sent: sent.horde.operation_key is not None,
}
"""Each path with the question whether a submission asks for it; a key without effect asks for nothing."""


def find_unserved(submission: ChatSubmission) -> str | None:
    """Return the path of the first thing a submission asks for that this server does not serve yet."""
    return next((path for path, is_asked_for in NOT_YET_SERVED.items() if is_asked_for(submission)), None)
