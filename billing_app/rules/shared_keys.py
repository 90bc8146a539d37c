"""How many shared keys somebody may have, and what one starts with."""

from decimal import Decimal

DEFAULT_SHARED_KUDOS = Decimal(5000)
MAX_SHARED_KEYS = 3
MAX_SHARED_KEYS_OF_TRUSTED = 10
MAX_SHARED_KEYS_OF_EDUCATION = 1000


def max_shared_keys(*, is_trusted: bool, is_education: bool) -> int:
    """Return how many keys that have not expired a user may have; trusted decides before education."""
    if is_trusted:
        return MAX_SHARED_KEYS_OF_TRUSTED
    return MAX_SHARED_KEYS_OF_EDUCATION if is_education else MAX_SHARED_KEYS
