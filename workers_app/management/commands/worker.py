"""`manage.py worker`: see how a worker stands, put it into maintenance or pause it, and end both."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from workers_app.errors import UnknownWorker
from workers_app.models import Worker
from workers_app.selectors import workers
from workers_app.services import steering
from workers_app.services.steering import MAX_MAINTENANCE_MESSAGE_CHARACTERS


class Command(BaseCommand):
    """Show and steer one worker."""

    help = (
        "Show how a worker stands, after changing what is asked for. In maintenance it serves its owner alone and its "
        "pops are refused with the message; paused, it is not refused and serves its owner alone. The server does both "
        "itself: maintenance after too many jobs given up, a pause after too many suspicions. Each may be repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be set."""
        parser.add_argument("name", metavar="NAME", help="the worker's whole name")
        parser.add_argument("--maintenance", choices=["on", "off"], help="start or end maintenance")
        parser.add_argument(
            "--message",
            metavar="TEXT",
            help=f"what pops are told in maintenance, up to {MAX_MAINTENANCE_MESSAGE_CHARACTERS} characters",
        )
        parser.add_argument("--paused", choices=["on", "off"], help="pause it, or end the pause and forget suspicions")
        parser.add_argument("--json", action="store_true", help="print one line of JSON")

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked.

        Raises:
            CommandError: there is no such worker, or the message cannot be told.
        """
        arguments = argparse.Namespace(**options)
        _check_message(arguments.message, maintenance=arguments.maintenance)
        try:
            if arguments.maintenance == "on":
                steering.start_maintenance(arguments.name, message=arguments.message)
            elif arguments.maintenance == "off":
                steering.end_maintenance(arguments.name)
            if arguments.paused == "on":
                steering.pause(arguments.name)
            elif arguments.paused == "off":
                steering.end_pause(arguments.name)
            self._show(workers.get(arguments.name), is_json=arguments.json)
        except UnknownWorker as error:
            raise CommandError(str(error)) from error

    def _show(self, worker: Worker, *, is_json: bool) -> None:
        facts = {
            "name": worker.name,
            "id": str(worker.id),
            "owner": worker.user.unique_alias,
            "last_check_in": worker.last_check_in.isoformat(timespec="seconds"),
            "maintenance": worker.maintenance,
            "maintenance_message": worker.maintenance_message,
            "paused": worker.paused,
            "suspicions": worker.suspicions,
            "requests_fulfilled": worker.requests_fulfilled,
            "uncompleted_jobs": worker.uncompleted_jobs,
            "tokens_per_second": worker.speed,
            "uptime_seconds": worker.uptime_seconds,
        }
        if is_json:
            self.stdout.write(orjson.dumps(facts).decode())
            return
        for name, value in facts.items():
            self.stdout.write(f"{name.replace('_', ' '):<20} {_word(value)}")


def _check_message(message: str | None, *, maintenance: str | None) -> None:
    if message is None:
        return
    if maintenance != "on":
        raise CommandError("--message goes with --maintenance on.")
    if not 0 < len(message) <= MAX_MAINTENANCE_MESSAGE_CHARACTERS or "\0" in message:
        raise CommandError(f"--message holds 1 to {MAX_MAINTENANCE_MESSAGE_CHARACTERS} characters.")


def _word(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
