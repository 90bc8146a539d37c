"""`manage.py ledger`: read somebody's books, and check all of them."""

import argparse
from datetime import UTC, datetime

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_app.errors import UserRefused
from billing_app.management.arguments import NamedUser, get_user_id, named_user
from billing_app.rules.accounts import AccountKind, HouseAccount
from billing_app.selectors import ledger, statements
from billing_app.selectors.ledger import Drift, Reconciliation
from billing_app.selectors.statements import Line, UserBalance

STATEMENT_LINES = 50
MOST_LINES = 1_000_000


def moment(text: str) -> datetime:
    """Read a date or a moment from the command line; one without a time zone is in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a moment such as 2026-03-01 or 2026-03-01T12:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def line_count(text: str) -> int:
    """Read how many lines are wanted."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MOST_LINES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines from 1 to {MOST_LINES}")
    return int(text)


class Command(BaseCommand):
    """Show what an account has and why; compare all sums with their transfers and holds."""

    help = (
        "Read the books: `balance` and `statement` show what somebody has and how it came to be; "
        "`reconcile` compares every account's sums with its transfers and open holds and fails on drift."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be asked."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

        statement = actions.add_parser("statement", help="list an account's newest transfers, the newest last")
        of_whom = statement.add_mutually_exclusive_group(required=True)
        of_whom.add_argument(
            "user", metavar="USER", nargs="?", type=named_user, help="whose balance: the number or alias"
        )
        of_whom.add_argument(
            "--account", metavar="ID", type=int, help="any account: a user's escrow, or tax (-1), burn (-2), mint (-3)"
        )
        statement.add_argument(
            "--limit", metavar="N", type=line_count, default=STATEMENT_LINES, help=f"at most N ({STATEMENT_LINES})"
        )
        statement.add_argument("--since", metavar="MOMENT", type=moment, help="none before this date or time (UTC)")
        statement.add_argument("--json", action="store_true", help="print one line of JSON: account, name, lines")

        balance = actions.add_parser("balance", help="show what a user has: posted, held, minimum, free, escrow")
        balance.add_argument("user", metavar="USER", type=named_user, help="the number or alias")
        balance.add_argument("--json", action="store_true", help="print one line of JSON")

        reconcile = actions.add_parser(
            "reconcile",
            help="compare every account's sums with its transfers and holds; reads the whole ledger, changes nothing",
        )
        reconcile.add_argument(
            "--json", action="store_true", help="print one line of JSON: sum, accounts, transfers, open_holds, drifted"
        )

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked.

        Raises:
            CommandError: nobody and nothing has the id, or the ledger has drifted; the message names the accounts.
        """
        arguments = argparse.Namespace(**options)
        if arguments.action == "statement":
            self._show_statement(arguments)
        elif arguments.action == "balance":
            self._show_balance(arguments)
        else:
            self._reconcile(arguments)

    def _show_statement(self, arguments: argparse.Namespace) -> None:
        account_id = arguments.account
        if account_id is None:
            account_id = _get_balance(arguments.user).balance.id
        name = statements.find_account_name(account_id=account_id)
        if name is None:
            raise CommandError(f"There is no account {account_id}.")
        lines = statements.list_lines(account_id=account_id, limit=arguments.limit, since=arguments.since)
        lines.reverse()
        if arguments.json:
            self.stdout.write(
                orjson.dumps(
                    {"account": account_id, "name": name, "lines": [_line_as_json(line) for line in lines]}
                ).decode()
            )
            return
        self.stdout.write(f"Account {account_id}, {name}: {len(lines)} transfers.")
        for line in lines:
            self.stdout.write(
                f"{line.created_at:%Y-%m-%d %H:%M:%S}  {line.kind:<10} {line.change:>+14.2f} {line.balance:>14.2f}"
                f"  {_other_name(line, account_id=account_id):<24} {line.cause or '-'}"
            )

    def _show_balance(self, arguments: argparse.Namespace) -> None:
        found = _get_balance(arguments.user)
        balance = found.balance
        if arguments.json:
            self.stdout.write(
                orjson.dumps(
                    {
                        "alias": found.unique_alias,
                        "account": balance.id,
                        "escrow_account": found.escrow.id,
                        "posted": f"{balance.posted_kudos:.2f}",
                        "held": f"{balance.held_kudos:.2f}",
                        "open_holds": balance.open_holds,
                        "minimum": f"{balance.minimum_kudos:.2f}",
                        "free": f"{balance.free_kudos:.2f}",
                        "escrow": f"{found.escrow.posted_kudos:.2f}",
                    }
                ).decode()
            )
            return
        self.stdout.write(f"{found.unique_alias}: account {balance.id}, escrow account {found.escrow.id}.")
        for name, amount, remark in (
            ("posted", balance.posted_kudos, "what its transfers add up to"),
            ("held", balance.held_kudos, f"reserved by {balance.open_holds} open holds"),
            ("minimum", balance.minimum_kudos, "no debit takes it lower"),
            ("free", balance.free_kudos, "posted - held - minimum: what a hold can reserve"),
            ("escrow", found.escrow.posted_kudos, "earned, paid out with trust"),
        ):
            self.stdout.write(f"{name:<8}{amount:>16.2f}  {remark}")

    def _reconcile(self, arguments: argparse.Namespace) -> None:
        found = ledger.reconcile(report=lambda part: self.stderr.write(f"{part:.0%} of the ledger read"))
        if arguments.json:
            self.stdout.write(orjson.dumps(_reconciliation_as_json(found)).decode())
        else:
            self.stdout.write(
                f"{found.accounts} accounts, {found.transfers} transfers, {found.open_holds} open holds, "
                f"sum over all {found.total:.2f}."
            )
        if not found.is_sound:
            differences = "; ".join(_describe(drift) for drift in found.drifted)
            raise CommandError(f"The ledger has drifted: {differences or f'the sum is {found.total:.2f}'}.")


def _get_balance(named: NamedUser) -> UserBalance:
    try:
        user_id = get_user_id(named)
    except UserRefused as error:
        raise CommandError(str(error)) from error
    found = statements.find_user_balance(user_id=user_id)
    if found is None:
        raise CommandError(f"There is no user with the id {user_id} who has accounts.")
    return found


def _other_name(line: Line, *, account_id: int) -> str:
    if line.other_account == account_id:
        return "itself"
    if line.other_account in {house.value for house in HouseAccount}:
        return HouseAccount(line.other_account).name.lower()
    if line.other_alias is None:
        return f"account {line.other_account}"
    return line.other_alias if line.other_kind == AccountKind.BALANCE else f"{line.other_alias} ({line.other_kind})"


def _line_as_json(line: Line) -> dict[str, object]:
    return {
        "at": line.created_at.isoformat(),
        "kind": line.kind,
        "other_account": line.other_account,
        "other_alias": line.other_alias,
        "amount": f"{line.amount:.2f}",
        "change": f"{line.change:.2f}",
        "balance": f"{line.balance:.2f}",
        "key": line.idempotency_key,
        "cause": None if line.cause is None else str(line.cause),
    }


def _reconciliation_as_json(found: Reconciliation) -> dict[str, object]:
    return {
        "sum": f"{found.total:.2f}",
        "accounts": found.accounts,
        "transfers": found.transfers,
        "open_holds": found.open_holds,
        "drifted": [
            {
                "account": drift.account_id,
                "posted": f"{drift.posted_kudos:.2f}",
                "transferred": f"{drift.transferred_kudos:.2f}",
                "held": f"{drift.held_kudos:.2f}",
                "open_holds": f"{drift.reserved_kudos:.2f}",
            }
            for drift in found.drifted
        ],
    }


def _describe(drift: Drift) -> str:
    differences = []
    if drift.posted_kudos != drift.transferred_kudos:
        differences.append(f"has {drift.posted_kudos:.2f}, by its transfers {drift.transferred_kudos:.2f}")
    if drift.held_kudos != drift.reserved_kudos:
        differences.append(f"holds {drift.held_kudos:.2f}, by its open holds {drift.reserved_kudos:.2f}")
    return f"account {drift.account_id} {' and '.join(differences)}"
