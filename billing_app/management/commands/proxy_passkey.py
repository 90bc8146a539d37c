"""`manage.py proxy_passkey`: let a service speak for its clients' addresses, or no longer."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_app.errors import UserRefused
from billing_app.management.arguments import get_user_id, named_user
from billing_app.services import proxy_passkeys
from hordechat.infra import clock


class Command(BaseCommand):
    """Make or revoke the passkey of a service account."""

    help = (
        "Give a service account a proxy passkey and print it. It is stored as a hash: it cannot be shown again. "
        "With it, sent as Proxy-Authorization, the address in Proxied-For counts as the client's. "
        "A service has one: the one before ends within 5 seconds, as does a revoked one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be set."""
        parser.add_argument(
            "user", metavar="USER_ID", type=named_user, help="the number, or the alias with its #number"
        )
        parser.add_argument("--revoke", action="store_true", help="take the passkey back and make no other")
        parser.add_argument(
            "--json", action="store_true", help="print one line of JSON: id, alias, and proxy_passkey or revoked"
        )

    def handle(self, *_: object, **options: object) -> None:
        """Make or revoke the passkey.

        Raises:
            CommandError: there is no such user, or a passkey is not for them.
        """
        arguments = argparse.Namespace(**options)
        try:
            user_id = get_user_id(arguments.user)
            line, text = _revoke(user_id) if arguments.revoke else _create(user_id)
        except UserRefused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(orjson.dumps(line).decode() if arguments.json else text)


def _create(user_id: int) -> tuple[dict[str, object], str]:
    owner = proxy_passkeys.create(user_id=user_id, now=clock.now())
    return (
        {"id": owner.id, "alias": owner.unique_alias, "proxy_passkey": owner.proxy_passkey},
        f"Made the proxy passkey of {owner.unique_alias}, shown this once:\n{owner.proxy_passkey}",
    )


def _revoke(user_id: int) -> tuple[dict[str, object], str]:
    revoked = proxy_passkeys.revoke(user_id=user_id)
    return (
        {"id": revoked.id, "alias": revoked.unique_alias, "revoked": revoked.was_known},
        f"Revoked the proxy passkey of {revoked.unique_alias}."
        if revoked.was_known
        else f"{revoked.unique_alias} has no proxy passkey.",
    )
