"""`manage.py flag`: flag a user, or clear the flag."""

import argparse

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_app.errors import UserRefused
from billing_app.management.arguments import get_user_id, named_user
from billing_app.services import flags


class Command(BaseCommand):
    """Flag a user."""

    help = (
        "Flag a user: the replacement filter rewrites the texts of what they ask from now on. Doing it twice is safe."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be set."""
        parser.add_argument(
            "user", metavar="USER_ID", type=named_user, help="the number, or the alias with its #number"
        )
        parser.add_argument("--clear", action="store_true", help="take the flag away")

    def handle(self, *_: object, **options: object) -> None:
        """Set or clear the flag.

        Raises:
            CommandError: there is no such user, or they cannot be flagged.
        """
        arguments = argparse.Namespace(**options)
        is_flagged = not arguments.clear
        try:
            user_id = get_user_id(arguments.user)
            is_changed = flags.set_flagged(user_id=user_id, is_flagged=is_flagged)
        except UserRefused as error:
            raise CommandError(str(error)) from error
        state = "flagged" if is_flagged else "not flagged"
        self.stdout.write(f"User {user_id} is {state} {'now' if is_changed else 'already'}.")
