"""`manage.py worker_message`: tell workers something with their pops."""

import argparse
from uuid import UUID

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hordechat.contract.limits import MAX_WORKER_MESSAGE_CHARACTERS
from hordechat.infra import clock
from workers_app.errors import UnknownWorker
from workers_app.management.arguments import MOST_HOURS, hours
from workers_app.selectors import workers
from workers_app.services import steering

MOST_LISTED = 1000
MAX_ORIGIN_CHARACTERS = 255


class Command(BaseCommand):
    """Send, list and remove messages to workers."""

    help = (
        "Tell workers something: a message comes with every pop of one worker, or of all, until it ends. `send` prints "
        "its id, `list` shows what is told, `remove` ends a message early and may be repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be done."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

        sending = actions.add_parser("send", help="tell one worker, or all, from now on")
        sending.add_argument("message", metavar="TEXT", help=f"up to {MAX_WORKER_MESSAGE_CHARACTERS} characters")
        sending.add_argument("--worker", metavar="NAME", help="the worker's whole name; every worker without it")
        sending.add_argument("--origin", metavar="WHO", default="operators", help="who says so (default: %(default)s)")
        sending.add_argument(
            "--hours",
            metavar="N",
            type=hours,
            default=24,
            help=f"how long it is told, 1 to {MOST_HOURS} (default: %(default)s)",
        )

        listing = actions.add_parser("list", help="show the messages still told")
        listing.add_argument("--json", action="store_true", help="print one line of JSON: messages")

        removing = actions.add_parser("remove", help="end a message")
        removing.add_argument("id", metavar="ID", type=UUID, help="as `list` shows it")

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked.

        Raises:
            CommandError: there is no such worker, or the text cannot be told.
        """
        arguments = argparse.Namespace(**options)
        if arguments.action == "list":
            self._list(is_json=arguments.json)
        elif arguments.action == "send":
            self._send(arguments)
        elif steering.remove_message(arguments.id):
            self.stdout.write("It is told no more.")
        else:
            self.stdout.write("There is no such message; `worker_message list` shows those that are told.")

    def _send(self, arguments: argparse.Namespace) -> None:
        for what, text, most in (
            ("a message", arguments.message, MAX_WORKER_MESSAGE_CHARACTERS),
            ("an origin", arguments.origin, MAX_ORIGIN_CHARACTERS),
        ):
            if not 0 < len(text) <= most or "\0" in text:
                raise CommandError(f"{text[:64]!r}: {what} holds 1 to {most} characters, and no NUL.")
        try:
            message_id = steering.send_message(
                arguments.message,
                worker_name=arguments.worker,
                origin=arguments.origin,
                hours=arguments.hours,
                now=clock.now(),
            )
        except UnknownWorker as error:
            raise CommandError(str(error)) from error
        self.stdout.write(str(message_id))

    def _list(self, *, is_json: bool) -> None:
        told = workers.list_messages(now=clock.now(), most=MOST_LISTED)
        if is_json:
            lines = [
                {
                    "id": str(each.id),
                    "worker": each.worker.name if each.worker else None,
                    "origin": each.origin,
                    "expiry": each.expiry.isoformat(),
                    "message": each.message,
                }
                for each in told
            ]
            self.stdout.write(orjson.dumps({"messages": lines}).decode())
            return
        self.stdout.write(f"{len(told)} told.")
        for each in told:
            to = each.worker.name if each.worker else "all workers"
            self.stdout.write(f"{each.id}  until {each.expiry:%Y-%m-%d %H:%M} UTC  to {to}: {each.message}")
