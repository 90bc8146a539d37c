"""Column types Django has no field for."""

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class FixedCharField(models.CharField):  # type: ignore[type-arg] # generic in the stubs alone
    """Text of one exact length, stored as `char(n)`; for digests and other values that are never shorter.

    A raw statement that compares the column with a parameter casts the parameter (`%(hashes)s::char(64)[]`):
    against `text` PostgreSQL would cast the column instead, and pass by its index.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str:  # noqa: ARG002 - Django's signature
        """Return the column's type."""
        return f"char({self.max_length})"
