"""What of the chat contract this server does not serve yet: refused by name, never accepted and ignored."""

from collections.abc import Callable, Mapping

from hordechat.contract.chat import ChatSubmission
from hordechat.contract.refusals import UnsupportedChatParameter
from hordechat.contract.vocabulary import Role

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
}
"""Each path with the question whether a submission asks for it; a key without effect asks for nothing.

A tool choice and `parallel_tool_calls` stand beside tools alone, so `tools` answers for them.
"""


def require_served(submission: ChatSubmission) -> ChatSubmission:
    """Return the submission, as the last step of judging its body (decision W7).

    Raises:
        UnsupportedChatParameter: it asks for something this server does not serve yet.
    """
    if path := _find_unserved(submission):
        raise UnsupportedChatParameter.not_yet(path)
    return submission


def _find_unserved(submission: ChatSubmission) -> str | None:
    """Return the path of the first thing a submission asks for that this server does not serve yet."""
    asked_for = (path for path, is_asked_for in NOT_YET_SERVED.items() if is_asked_for(submission))
    return next(asked_for, None) or _find_in_messages(submission)


def _find_in_messages(submission: ChatSubmission) -> str | None:
    """Return the path of the first message of a tool round, which needs a worker with tools."""
    for index, message in enumerate(submission.messages):
        if message.tool_calls:
            return f"messages[{index}].tool_calls"
        if message.role is Role.TOOL:
            return f"messages[{index}].role=tool"
    return None
