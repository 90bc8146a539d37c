"""What a worker has to declare to serve a request; derived once, when the request is created."""

from hordechat.contract.vocabulary import Capability, Conformance


def needs_of(*, conformance: Conformance) -> tuple[str, ...]:
    """Return the capabilities a request needs, sorted as they are stored."""
    if conformance is Conformance.BEST_EFFORT:
        return ()
    return (Capability.PROMPT_OVERFLOW_REFUSED.value,)
