"""`manage.py create_key`: give a user one more API key and show it, once."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_app.errors import UserRefused
from billing_app.management.arguments import get_user_id, named_user
from billing_app.services import accounts
from hordechat.infra import clock


class Command(BaseCommand):
    """Make one more API key for a user."""

    help = (
        "Give a user one more API key and print it. It is stored as a hash: it cannot be shown again. "
        "The user's other keys stay valid."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be set."""
        parser.add_argument(
            "user", metavar="USER_ID", type=named_user, help="the number, or the alias with its #number"
        )
        parser.add_argument("--name", default="", help="what the key is for, to tell keys apart in the admin")
        parser.add_argument("--json", action="store_true", help="print one line of JSON: id, alias, api_key")

    def handle(self, *_: object, **options: object) -> None:
        """Make the key.

        Raises:
            CommandError: there is no such user, or the name cannot be used.
        """
        arguments = argparse.Namespace(**options)
        try:
            owner = accounts.create_key(user_id=get_user_id(arguments.user), name=arguments.name, now=clock.now())
        except UserRefused as error:
            raise CommandError(str(error)) from error
        if arguments.json:
            line = {"id": owner.id, "alias": owner.unique_alias, "api_key": owner.api_key}
            self.stdout.write(orjson.dumps(line).decode())
        else:
            self.stdout.write(f"Made a key for {owner.unique_alias}, shown this once:\n{owner.api_key}")
