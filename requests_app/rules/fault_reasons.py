"""What a request says of a worker's fault: our own sentence for each known reason, never a worker's text (WFR-02)."""

from collections.abc import Mapping

from hordechat.contract.vocabulary import FaultReason

CHAT_WORKER_FAULT = "ChatWorkerFault"
"""The `fault_rc` of a request whose worker said why it gave up; no answer carries it as its `rc`."""

MESSAGES: Mapping[FaultReason, str] = {
    FaultReason.PROMPT_OVERFLOW: "The worker could not fit the prompt into its context.",
    FaultReason.UNBUILDABLE_GRAMMAR: (
        "The worker could not build the grammar the request's tool choice or response format needs."
    ),
    FaultReason.TOOL_VIOLATION: "The model's reply broke the request's tool controls.",
    FaultReason.REPLY_REFUSED: "The AI Horde refused the worker's reply.",
    FaultReason.GENERATION_ERROR: "The worker's backend failed while generating.",
}

NO_REASON = "none"
UNKNOWN_REASON = "unknown"


def find_known(sent: object) -> FaultReason | None:
    """Return the reason a worker sent, or None for no reason or one this server does not know (WFR-13, WFR-14)."""
    return FaultReason(sent) if isinstance(sent, str) and sent in set(FaultReason) else None


def label_of(sent: object) -> str:
    """Return what a metric counts a fault under (WFR-20, WFR-21, WFR-24)."""
    return NO_REASON if sent is None else find_known(sent) or UNKNOWN_REASON
