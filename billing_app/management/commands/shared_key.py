"""`manage.py shared_key`: make, list and end the keys others may ask with on a user's account."""

import argparse
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from uuid import UUID

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_app.errors import UnknownUser, UserRefused
from billing_app.management.arguments import get_user_id, named_user
from billing_app.rules.shared_keys import DEFAULT_SHARED_KUDOS
from billing_app.selectors import shared_keys as kept_keys
from billing_app.selectors.shared_keys import SharedKeyState
from billing_app.services import shared_keys
from hordechat.infra import clock

UNLIMITED = Decimal(-1)
MOST_DAYS = 36_500


def kudos_limit(text: str) -> Decimal | None:
    """Read what a key may spend; -1 is no limit."""
    try:
        kudos = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if kudos.is_nan():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return None if kudos == UNLIMITED else kudos


def day_count(text: str) -> int:
    """Read for how many days a key is valid."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days from 1 to {MOST_DAYS}")
    return int(text)


class Command(BaseCommand):
    """Look after shared keys."""

    help = (
        "Make, list and end shared keys. Whoever has a shared key's id asks with it in place of an API key, "
        "and its owner pays, up to what the key may spend."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be asked."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

        create = actions.add_parser("create", help="make a shared key and print its id, which is the credential")
        create.add_argument("user", metavar="USER_ID", type=named_user, help="who pays: the number or alias#number")
        create.add_argument(
            "--kudos",
            metavar="N",
            type=kudos_limit,
            default=DEFAULT_SHARED_KUDOS,
            help=f"what it may spend, -1 for all its owner has (default: {DEFAULT_SHARED_KUDOS})",
        )
        create.add_argument("--days", metavar="N", type=day_count, help="for how long it is valid (default: for ever)")
        create.add_argument("--name", metavar="TEXT", default="", help="what it is for")
        create.add_argument(
            "--max-text-tokens", metavar="N", type=int, help="the longest output it may ask for (default: no limit)"
        )
        create.add_argument("--json", action="store_true", help="print one line of JSON: id, alias")

        listing = actions.add_parser("list", help="list a user's shared keys, the newest first")
        listing.add_argument("user", metavar="USER_ID", type=named_user, help="the number or alias#number")
        listing.add_argument("--json", action="store_true", help="print one line of JSON: a list of keys")

        expire = actions.add_parser("expire", help="end a shared key; what was asked with it is served to its end")
        expire.add_argument("key", metavar="KEY_ID", type=UUID, help="its id")

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked.

        Raises:
            CommandError: there is no such user or key, or it cannot be made; the message says why.
        """
        arguments = argparse.Namespace(**options)
        now = clock.now()
        try:
            if arguments.action == "create":
                self._create(arguments, now=now)
            elif arguments.action == "list":
                self._list(arguments, now=now)
            else:
                is_ended = shared_keys.expire(key_id=arguments.key, now=now)
                self.stdout.write(
                    "The shared key is expired now." if is_ended else "The shared key had expired before."
                )
        except UserRefused as error:
            raise CommandError(str(error)) from error

    def _create(self, arguments: argparse.Namespace, *, now: datetime) -> None:
        made = shared_keys.create(
            user_id=get_user_id(arguments.user),
            kudos=arguments.kudos,
            expires_at=None if arguments.days is None else now + timedelta(days=arguments.days),
            name=arguments.name,
            max_text_tokens=arguments.max_text_tokens,
            now=now,
        )
        if arguments.json:
            self.stdout.write(orjson.dumps({"id": str(made.id), "alias": made.unique_alias}).decode())
        else:
            self.stdout.write(f"Made a shared key of {made.unique_alias}; whoever has it can spend:\n{made.id}")

    def _list(self, arguments: argparse.Namespace, *, now: datetime) -> None:
        user_id = get_user_id(arguments.user)
        found = kept_keys.find_of_user(user_id=user_id)
        if found is None:
            raise UnknownUser(user_id)
        if arguments.json:
            self.stdout.write(orjson.dumps([_as_json(key) for key in found.keys]).decode())
            return
        self.stdout.write(f"{found.unique_alias}: {len(found.keys)} shared keys.")
        for key in found.keys:
            self.stdout.write(_describe(key, now=now))


def _describe(key: SharedKeyState, *, now: datetime) -> str:
    left = "unlimited" if key.left_kudos is None else f"{key.left_kudos:.2f} left"
    tokens = "" if key.max_text_tokens is None else f", at most {key.max_text_tokens} tokens"
    if key.expires_at is None:
        end = "never expires"
    else:
        end = f"{'expired' if key.expires_at <= now else 'expires'} {key.expires_at:%Y-%m-%d %H:%M}"
    return f"{key.id}  {left}, {key.used_kudos:.2f} used{tokens}, {end}  {key.name}".rstrip()


def _as_json(key: SharedKeyState) -> dict[str, object]:
    return {
        "id": str(key.id),
        "name": key.name,
        "left_kudos": None if key.left_kudos is None else f"{key.left_kudos:.2f}",
        "used_kudos": f"{key.used_kudos:.2f}",
        "max_text_tokens": key.max_text_tokens,
        "expires_at": None if key.expires_at is None else key.expires_at.isoformat(),
        "created_at": key.created_at.isoformat(),
    }
