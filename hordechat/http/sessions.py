"""The admin's sessions, in the database (`SESSION_ENGINE`)."""

from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore


class SessionStore(DatabaseSessionStore):
    """Takes a cookie that Django cannot have made for none: in quotes it can spell NUL, which no statement can hold."""

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key if set(session_key or "") <= set(VALID_KEY_CHARS) else None)
