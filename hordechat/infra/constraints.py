"""Tell which constraint a statement violated: one violation is a lost race, another is a fault."""

from django.db import IntegrityError
from psycopg import Error


def is_violation_of(error: IntegrityError, name: str) -> bool:
    """Return whether PostgreSQL refused a row for the constraint or unique index of this name."""
    cause = error.__cause__
    return isinstance(cause, Error) and cause.diag.constraint_name == name
