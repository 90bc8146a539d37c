"""`manage.py statistics`: how much the site generated, within the last minute, hour, day, 30 days, and in all."""

import argparse
from collections.abc import Sequence
from itertools import groupby

import orjson
from django.core.management.base import BaseCommand, CommandParser

from hordechat.infra import clock
from requests_app.selectors import statistics
from requests_app.selectors.statistics import Total

NAME_CHARACTERS = 40


class Command(BaseCommand):
    """Show what finished generations add up to."""

    help = (
        "Show how many replies workers gave within the last minute, hour, day, 30 days and in all, how many tokens "
        "were asked for and written, and how many generations were given up: for chat and text, in all and by model. "
        "What ended since the last roll-up, which comes once a minute, is not counted yet."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be asked."""
        parser.add_argument("--json", action="store_true", help="print one line of JSON: chat, text")

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked."""
        arguments = argparse.Namespace(**options)
        now = clock.now()
        families = {
            family: statistics.list_totals(is_chat=is_chat, now=now)
            for family, is_chat in (("chat", True), ("text", False))
        }
        if arguments.json:
            self.stdout.write(orjson.dumps({name: _as_json(totals) for name, totals in families.items()}).decode())
            return
        for name, totals in families.items():
            self.stdout.write(
                f"{name:<{NAME_CHARACTERS}} {'replies':>10} {'cancelled':>10} {'faulted':>10}"
                f" {'tokens asked':>16} {'tokens written':>16} {'tokens/s':>9}"
            )
            for total in totals:
                self.stdout.write(_describe(total))


def _describe(total: Total) -> str:
    name = total.span if total.model is None else f"  {total.model}"
    return (
        f"{name:<{NAME_CHARACTERS}} {total.replies:>10} {total.cancelled:>10} {total.faulted:>10}"
        f" {total.requested_tokens:>16} {total.written_tokens:>16} {total.tokens_per_second:>9.1f}"
    )


def _as_json(totals: Sequence[Total]) -> dict[str, object]:
    spans: dict[str, object] = {}
    for span, (together, *by_model) in groupby(totals, key=lambda total: total.span):
        spans[span] = {
            **_figures(together),
            "models": {total.model: _figures(total) for total in by_model},
        }
    return spans


def _figures(total: Total) -> dict[str, object]:
    return {
        "replies": total.replies,
        "cancelled": total.cancelled,
        "faulted": total.faulted,
        "requested_tokens": total.requested_tokens,
        "written_tokens": total.written_tokens,
        "seconds": total.milliseconds / 1000,
        "tokens_per_second": round(total.tokens_per_second, 1),
    }
