#!/usr/bin/env python3
"""Run an operator's command: `manage.py --help` lists them."""

import os
import sys


def main() -> None:
    """Hand the command line to Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hordechat.settings.django")
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - the settings have to be named first

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
