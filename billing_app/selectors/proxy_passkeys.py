"""Which proxy passkeys are known: those of services in good standing, in a copy that each process keeps for moments."""

import hmac
import logging
from datetime import datetime, timedelta
from threading import Lock

from django.db import Error

from billing_app.models import ProxyPasskey
from billing_app.selectors import keys

logger = logging.getLogger(__name__)

COPY_LIFE = timedelta(seconds=5)
"""How long a copy counts: a revoked passkey is believed for as long, and a flood of guesses costs one query in it."""


def list_hashes() -> list[str]:
    """Return the hash of every passkey whose owner is a service, not flagged and not deleted."""
    rows = ProxyPasskey.objects.filter(user__is_service=True, user__is_flagged=False, user__is_deleted=False)
    return list(rows.order_by("user_id").values_list("passkey_hash", flat=True))


class KnownPasskeys:
    """A copy of the known hashes, read when it is first asked and then at most once in its life.

    While the database cannot be read the last copy counts, and without one no passkey is known.
    """

    def __init__(self) -> None:
        self._hashes: list[str] = []
        self._read_at: datetime | None = None
        self._reading = Lock()

    def is_known(self, passkey: str, *, now: datetime) -> bool:
        """Return whether a service calls with this passkey; the time taken does not tell how near a guess came."""
        candidates = keys.candidate_hashes(passkey)
        matches = [
            hmac.compare_digest(candidate, known) for known in self._current_hashes(now) for candidate in candidates
        ]
        return any(matches)

    def _current_hashes(self, now: datetime) -> list[str]:
        # A first copy is waited for. Later one thread reads, and the others go on with the last copy.
        if not self._is_fresh(now) and self._reading.acquire(blocking=self._read_at is None):
            try:
                if not self._is_fresh(now):
                    self._read(now)
            finally:
                self._reading.release()
        return self._hashes

    def _is_fresh(self, now: datetime) -> bool:
        # Threads read the clock in another order than they come here, and it may be set back: both ways count.
        return self._read_at is not None and abs(now - self._read_at) < COPY_LIFE

    def _read(self, now: datetime) -> None:
        try:
            self._hashes = list_hashes()
        except Error as error:
            logger.warning("the proxy passkeys cannot be read (%s): the last copy counts", type(error).__name__)
        # A failed try counts like another: an outage must not cost every call its time-out.
        self._read_at = now
