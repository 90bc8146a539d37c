"""Lists of capabilities as the bit masks the queue compares: what a request needs, what a worker declares."""

from collections.abc import Iterable

from hordechat.contract.vocabulary import Capability

BITS: dict[str, int] = {capability.value: 1 << place for place, capability in enumerate(Capability)}
"""Each capability's bit; places never change, the queue's rows hold them."""

assert len(Capability) < 63, "a bigint holds 63 bits"  # noqa: PLR2004


def mask_of(capabilities: Iterable[str]) -> int:
    """Return the capabilities as bits; unknown names count for nothing."""
    mask = 0
    for capability in capabilities:
        mask |= BITS.get(capability, 0)
    return mask
