"""`manage.py maintenance`: refuse new requests while the site is worked on."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandParser

from requests_app.selectors import site_modes as modes
from requests_app.services import site_modes

ON = "Maintenance is on: new requests are refused, what is queued is served."
OFF = "Maintenance is off: new requests are taken."


class Command(BaseCommand):
    """Switch the site's maintenance."""

    help = "Refuse new requests (`on`), take them again (`off`), or show which. What is queued is served either way."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be asked."""
        parser.add_argument("action", choices=["on", "off", "status"], help="what to do")
        parser.add_argument("--json", action="store_true", help="print one line of JSON: maintenance")

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked and show how it stands."""
        arguments = argparse.Namespace(**options)
        if arguments.action != "status":
            site_modes.set_maintenance(is_on=arguments.action == "on")
        is_on = modes.is_in_maintenance()
        if arguments.json:
            self.stdout.write(orjson.dumps({"maintenance": is_on}).decode())
        else:
            self.stdout.write(ON if is_on else OFF)
