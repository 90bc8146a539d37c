"""`manage.py filters`: keep, remove and try the patterns of the replacement filter."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hordechat.infra import clock
from requests_app.errors import CorruptPrompt, FilterRefused
from requests_app.rules import screening
from requests_app.rules.screening import FILTER_TYPES, REPLACEMENT_FILTER_TYPE
from requests_app.selectors import prompt_filters as kept_filters
from requests_app.selectors.prompt_filters import KeptFilter
from requests_app.services import prompt_filters


class Command(BaseCommand):
    """Look after the filters."""

    help = (
        "List, add and remove the patterns that rewrite the texts of flagged users, and show what they make of a text. "
        "Patterns ignore case and see texts without punctuation and accents. A filter is changed by removing it and "
        "adding another."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be asked."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

        listing = actions.add_parser("list", help="list all filters, in the order they are applied in")
        listing.add_argument("--json", action="store_true", help="print one line of JSON: a list of filters")

        add = actions.add_parser("add", help="keep a filter; adding it again changes nothing")
        add.add_argument("regex", metavar="REGEX", help="the pattern, in the syntax of Python's regex package")
        add.add_argument("--replacement", metavar="TEXT", default="", help="what takes its place (default: nothing)")
        add.add_argument(
            "--type",
            dest="filter_type",
            metavar="N",
            type=int,
            default=REPLACEMENT_FILTER_TYPE,
            help=f"{FILTER_TYPES[0]} to {FILTER_TYPES[-1]}; only {REPLACEMENT_FILTER_TYPE}, the default, rewrites",
        )
        add.add_argument("--description", metavar="TEXT", default="", help="why it is there")
        add.add_argument("--json", action="store_true", help="print the filter as one line of JSON")

        remove = actions.add_parser("remove", help="remove a filter")
        remove.add_argument("id", metavar="ID", type=int, help="its number, as `list` shows it")

        test = actions.add_parser(
            "test", help="show what the filters make of a text of a flagged user; nothing is kept"
        )
        test.add_argument("text", metavar="TEXT", help="any text")
        test.add_argument(
            "--json", action="store_true", help="print one line of JSON: normalised, rewritten, age_related"
        )

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked.

        Raises:
            CommandError: the filter cannot be kept, or the text not rewritten in time; the message says why.
        """
        arguments = argparse.Namespace(**options)
        try:
            if arguments.action == "list":
                self._list(arguments)
            elif arguments.action == "add":
                self._add(arguments)
            elif arguments.action == "remove":
                is_removed = prompt_filters.remove(filter_id=arguments.id)
                self.stdout.write(f"{'Removed' if is_removed else 'There is no'} filter {arguments.id}.")
            else:
                self._test(arguments)
        except (FilterRefused, CorruptPrompt) as error:
            raise CommandError(str(error)) from error

    def _list(self, arguments: argparse.Namespace) -> None:
        found = kept_filters.list_kept()
        if arguments.json:
            self.stdout.write(orjson.dumps([_as_json(each) for each in found]).decode())
            return
        self.stdout.write(f"{len(found)} filters.")
        for each in found:
            self.stdout.write(_describe(each))

    def _add(self, arguments: argparse.Namespace) -> None:
        addition = prompt_filters.add(
            regex=arguments.regex,
            filter_type=arguments.filter_type,
            replacement=arguments.replacement,
            description=arguments.description,
            now=clock.now(),
        )
        if arguments.json:
            self.stdout.write(orjson.dumps(_as_json(addition.kept)).decode())
        else:
            self.stdout.write(
                f"{'Added' if addition.is_new else 'There already, unchanged'}: {_describe(addition.kept)}"
            )

    def _test(self, arguments: argparse.Namespace) -> None:
        filters = kept_filters.list_replacements()
        normalised = screening.normalise(arguments.text)
        rewritten = screening.rewrite_text(arguments.text, filters)
        is_age_related = screening.is_age_related(arguments.text, filters)
        if arguments.json:
            line = {"normalised": normalised, "rewritten": rewritten, "age_related": is_age_related}
            self.stdout.write(orjson.dumps(line).decode())
            return
        self.stdout.write(f"filters see  {normalised!r}")
        self.stdout.write(f"workers get  {rewritten!r}")
        self.stdout.write(f"age related  {'yes' if is_age_related else 'no'}")


def _describe(each: KeptFilter) -> str:
    remark = f"  ({each.description})" if each.description else ""
    return f"{each.id}  type {each.filter_type}  '{each.regex}' -> '{each.replacement}'{remark}"


def _as_json(each: KeptFilter) -> dict[str, object]:
    return {
        "id": each.id,
        "filter_type": each.filter_type,
        "regex": each.regex,
        "replacement": each.replacement,
        "description": each.description,
        "created_at": each.created_at.isoformat(),
    }
