"""`manage.py ledger`: check the books."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_app.selectors import ledger


class Command(BaseCommand):
    """Compare the ledger's sums with its transfers."""

    help = "Check the books: `reconcile` compares every account's sum with its transfers and fails on drift."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be asked."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        reconcile = actions.add_parser(
            "reconcile",
            help="compare every account's sum with its transfers; reads the whole ledger, changes nothing",
        )
        reconcile.add_argument(
            "--json", action="store_true", help="print one line of JSON: sum, accounts, transfers, drifted"
        )

    def handle(self, *_: object, **options: object) -> None:
        """Report the state of the books.

        Raises:
            CommandError: a sum differs from its transfers; the message names the accounts.
        """
        arguments = argparse.Namespace(**options)
        found = ledger.reconcile()
        if arguments.json:
            line = {
                "sum": f"{found.total:.2f}",
                "accounts": found.accounts,
                "transfers": found.transfers,
                "drifted": [
                    {
                        "account": drift.account_id,
                        "posted": f"{drift.posted_kudos:.2f}",
                        "transferred": f"{drift.transferred_kudos:.2f}",
                    }
                    for drift in found.drifted
                ],
            }
            self.stdout.write(orjson.dumps(line).decode())
        else:
            self.stdout.write(
                f"{found.accounts} accounts, {found.transfers} transfers, sum over all {found.total:.2f}."
            )
        if not found.is_sound:
            differences = "; ".join(
                f"account {drift.account_id} holds {drift.posted_kudos:.2f}, "
                f"by its transfers {drift.transferred_kudos:.2f}"
                for drift in found.drifted
            )
            raise CommandError(f"The ledger has drifted: {differences or f'the sum is {found.total:.2f}'}.")
