"""How PostgreSQL runs the statements of a call, as it would run them now."""

import re
from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext


def plan_of(call: Callable[[], object]) -> str:
    """Do a call, and return the plans of its statements; those that only begin or end something have none."""
    with CaptureQueriesContext(connection) as captured:
        call()
    lines: list[str] = []
    with connection.cursor() as cursor:
        for query in captured:
            if not re.match(r"BEGIN|COMMIT|SAVEPOINT|RELEASE", query["sql"]):
                cursor.execute(f"EXPLAIN {query['sql']}")
                lines += [line for (line,) in cursor.fetchall()]
    return "\n".join(lines)
