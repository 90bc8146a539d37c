"""Plain SQL beside the code that runs it: load a `.sql` file, run it, get values.

Parameters go by name (`%(name)s`) and are never formatted in. A row comes back as the caller's dataclass, each column
in the field of its name.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.db import connection

Row = TypeVar("Row")
Parameters = Mapping[str, Any]
"""Values by name: whatever psycopg adapts, arrays and JSON included."""


@cache
def load(module_file: str, name: str) -> str:
    """Return the text of `name`, a file of the `sql` folder beside the module whose `__file__` is passed."""
    return (Path(module_file).parent / "sql" / name).read_text(encoding="utf-8")


def fetch_all(statement: str, parameters: Parameters, row_type: type[Row]) -> list[Row]:
    """Run a statement and return its rows, in order; each column fills the field of its name."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description]
        return [row_type(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def find_one(statement: str, parameters: Parameters, row_type: type[Row]) -> Row | None:
    """Run a statement of at most one row and return it."""
    rows = fetch_all(statement, parameters, row_type)
    assert len(rows) <= 1, "the statement has to return at most one row"
    return rows[0] if rows else None


def execute(statement: str, parameters: Parameters) -> int:
    """Run a statement and return the number of rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        touched: int = cursor.rowcount
        return touched
