"""`manage.py maintenance`: refuse new requests while the site is worked on, and end those that wait."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hordechat.infra import clock
from requests_app.selectors import site_modes as modes
from requests_app.services import site_modes

ON = "Maintenance is on: new requests are refused, what is queued is served."
OFF = "Maintenance is off: new requests are taken."


class Command(BaseCommand):
    """Switch the site's maintenance."""

    help = (
        "Refuse new requests (`on`), take them again (`off`), or show which. What is queued is served either way, "
        "unless `on --cancel-waiting` cancels what nobody has taken yet."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be asked."""
        parser.add_argument("action", choices=["on", "off", "status"], help="what to do")
        parser.add_argument(
            "--cancel-waiting",
            action="store_true",
            help="with `on`: cancel every waiting request too; what workers have in hand is finished and paid",
        )
        parser.add_argument("--json", action="store_true", help="print one line of JSON: maintenance, cancelled")

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked and show how it stands.

        Raises:
            CommandError: requests are to be cancelled without maintenance: new ones would come.
        """
        arguments = argparse.Namespace(**options)
        cancelled = 0
        if arguments.cancel_waiting:
            if arguments.action != "on":
                raise CommandError(
                    "--cancel-waiting goes with `on` alone: without maintenance new requests would come."
                )
            cancelled = site_modes.cancel_for_maintenance(now=clock.now(), tell=self._tell)
        elif arguments.action != "status":
            site_modes.set_maintenance(is_on=arguments.action == "on")
        is_on = modes.is_in_maintenance()
        if arguments.json:
            self.stdout.write(orjson.dumps({"maintenance": is_on, "cancelled": cancelled}).decode())
            return
        self.stdout.write(ON if is_on else OFF)
        if arguments.cancel_waiting:
            self.stdout.write(f"{cancelled} waiting requests were cancelled.")

    def _tell(self, cancelled: int) -> None:
        self.stderr.write(f"{cancelled} cancelled so far")
