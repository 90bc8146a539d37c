"""Which backends are validated: known to serve what they claim, so that a known model earns in full with them."""

import re

VALIDATED_BACKENDS = frozenset(
    {
        "AI Horde Worker",
        "AI Horde Worker~aphrodite~oai",
        "AI Horde Worker~aphrodite~kai",
        "KoboldCppEmbedWorker",
        "TabbyAPI",
    }
)
"""Names of deployed worker programs, as the first part of their `bridge_agent`."""

AGENT = re.compile(r"(?P<name>[^:]+):v?\d+(\.\d+)*[^:]*:.*", re.DOTALL)


def is_validated(bridge_agent: str) -> bool:
    """Return whether a `bridge_agent` (`name:version:url`) names a validated backend; an unreadable one does not."""
    found = AGENT.fullmatch(bridge_agent)
    return found is not None and found["name"] in VALIDATED_BACKENDS
