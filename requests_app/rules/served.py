"""What of the chat contract this server does not serve yet: refused by name, never accepted and ignored."""

from collections.abc import Callable, Mapping

from hordechat.contract.chat import ChatSubmission
from hordechat.contract.refusals import UnsupportedChatParameter

NOT_YET_SERVED: Mapping[str, Callable[[ChatSubmission], bool]] = {
    "stream": lambda sent: sent.is_streamed,
}
"""Each path with the question whether a submission asks for it; a key without effect asks for nothing."""


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
    return next((path for path, is_asked_for in NOT_YET_SERVED.items() if is_asked_for(submission)), None)
