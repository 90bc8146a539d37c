"""`manage.py create_user`: make a user and show their API key, once."""

import argparse
import os
from decimal import Decimal, InvalidOperation

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_app.errors import UserRefused
from billing_app.services import accounts
from hordechat.infra import clock


def kudos(text: str) -> Decimal:
    """Read an amount of kudos from the command line."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


class Command(BaseCommand):
    """Make a user with accounts and a first API key."""

    help = (
        "Make a user and print their first API key. The key is stored as a hash: it cannot be shown again. "
        "Aliases need not be unique, so each run makes another user; a login that exists is refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be set."""
        parser.add_argument("alias", metavar="ALIAS", help="the name others see, followed by # and the id")
        parser.add_argument("--kudos", type=kudos, default=Decimal(0), help="what the user starts with (default: 0)")
        parser.add_argument("--trusted", action="store_true", help="the user's workers are paid in full at once")
        parser.add_argument(
            "--service", action="store_true", help="the user is a service that asks for others; see proxy_passkey"
        )
        parser.add_argument("--staff", action="store_true", help="let the user into the admin; needs --login")
        parser.add_argument("--login", metavar="NAME", help="what a staff user signs in with")
        parser.add_argument(
            "--password-env", metavar="VAR", help="the environment variable that holds a staff user's password"
        )
        parser.add_argument("--json", action="store_true", help="print one line of JSON: id, alias, api_key")

    def handle(self, *_: object, **options: object) -> None:
        """Make the user.

        Raises:
            CommandError: a value cannot be used; the message says which.
        """
        arguments = argparse.Namespace(**options)
        password = None
        if arguments.password_env is not None:
            password = os.environ.get(arguments.password_env)
            if not password:
                raise CommandError(f"The environment variable {arguments.password_env} holds no password.")
        try:
            owner = accounts.create_user(
                alias=arguments.alias,
                kudos=arguments.kudos,
                is_trusted=arguments.trusted,
                is_service=arguments.service,
                is_staff=arguments.staff,
                login=arguments.login,
                password=password,
                now=clock.now(),
            )
        except UserRefused as error:
            raise CommandError(str(error)) from error
        if arguments.json:
            line = {"id": owner.id, "alias": owner.unique_alias, "api_key": owner.api_key}
            self.stdout.write(orjson.dumps(line).decode())
        else:
            self.stdout.write(f"Made the user {owner.unique_alias}. Their API key, shown this once:\n{owner.api_key}")
