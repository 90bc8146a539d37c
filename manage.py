#!/usr/bin/env python3
"""Run an operator's command: `manage.py --help` lists them."""

import os
import signal
import sys

UNDEFINED_TABLE, UNDEFINED_COLUMN = "42P01", "42703"


def main() -> None:
    """Hand the command line to Django, and end with a line instead of a traceback where the database is not ready."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hordechat.settings.django")
    # A command makes do with one connection, whose failure says why there is none, as a pool's does not; and it takes
    # the time it needs, to build an index or to reconcile the transfers of years.
    os.environ |= {"HORDE_DATABASE_POOL_SIZE": "0", "HORDE_DATABASE_STATEMENT_TIMEOUT_SECONDS": "0"}
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - the settings have to be named first
    from django.db import OperationalError, ProgrammingError  # noqa: PLC0415

    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (OperationalError, ProgrammingError) as error:
        match getattr(error.__cause__, "sqlstate", ""):
            case None:  # what is refused once there is a connection has a code
                sys.exit(f"There is no database: {str(error).strip()}\nStart PostgreSQL, or correct DATABASE_URL.")
            case str(code) if code in {UNDEFINED_TABLE, UNDEFINED_COLUMN}:
                sys.exit(f"The database is not migrated: {str(error).splitlines()[0]}\nRun manage.py migrate.")
            case _:
                raise


if __name__ == "__main__":
    main()
