"""How an API key is recognised: what its row's hash may be. The key itself is never stored, logged or compared.

Whoever looks a key up joins `api_keys` in a statement of their own:

    WHERE api_keys.key_hash = ANY(%(key_hashes)s::char(64)[]) AND api_keys.revoked_at IS NULL
"""

import hashlib
import hmac
from uuid import UUID

from django.conf import settings

from billing_app.rules.accounts import PUBLIC_KEY

PUBLIC_KEY_HASH = hashlib.sha256(PUBLIC_KEY.encode()).hexdigest()
"""The public key is no secret, and its row, which a migration makes, must outlive every pepper."""

SHARED_KEY_CHARACTERS = 36
"""Of a UUID with its hyphens, which is the whole of a shared key."""

MAX_KEY_CHARACTERS = 100
"""Keys are 22 characters; a header of megabytes is refused unhashed."""


def candidate_hashes(key: str) -> list[str]:
    """Return every hash a key may be stored under, one for each pepper; none for what cannot be a key."""
    if key == PUBLIC_KEY:
        return [PUBLIC_KEY_HASH]
    if not 0 < len(key) <= MAX_KEY_CHARACTERS:
        return []
    return [_keyed_hash(key, secret=secret) for _, secret in settings.HORDE.peppers]


def parse_shared(key: str) -> UUID | None:
    """Return the id a shared key is given by, None for what is no shared key. API keys are shorter than a UUID."""
    if len(key) != SHARED_KEY_CHARACTERS:
        return None
    try:
        return UUID(key)
    except ValueError:
        return None


def hash_new(key: str) -> tuple[str, str]:
    """Return the pepper id and the hash that a new key is stored with."""
    pepper_id, secret = settings.HORDE.peppers[0]
    return pepper_id, _keyed_hash(key, secret=secret)


def _keyed_hash(key: str, *, secret: str) -> str:
    # A header may decode to lone surrogates; they are hashed like anything else and match nothing.
    return hmac.digest(secret.encode(), key.encode("utf-8", "surrogatepass"), "sha256").hex()
