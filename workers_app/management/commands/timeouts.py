"""`manage.py timeouts`: stop serving an address or a network for some hours, and see who is not served."""

import argparse

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser

from hordechat.infra import address_timeouts, clock
from hordechat.infra.address_timeouts import AddressTimeout, BadNetwork, TimeoutsUnreachable
from workers_app.management.arguments import MOST_HOURS, hours

SECONDS_AN_HOUR = 60 * 60


class Command(BaseCommand):
    """List, add and remove the time-outs of addresses."""

    help = (
        "Stop serving unwelcome addresses for a while, on every machine at once: `list` shows them, `add` times one "
        "out from now on, `remove` ends that. Each may be repeated. An IPv6 address is taken as its /64 network."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what can be done."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

        listing = actions.add_parser("list", help="show every time-out and when it ends")
        listing.add_argument("--json", action="store_true", help="print one line of JSON: timeouts")

        adding = actions.add_parser("add", help="time out an address or network, in place of the time-out it has")
        adding.add_argument("network", metavar="ADDRESS_OR_NETWORK", help="such as 198.51.100.7 or 198.51.100.0/24")
        adding.add_argument(
            "--hours", metavar="N", type=hours, required=True, help=f"how long from now, 1 to {MOST_HOURS}"
        )

        removing = actions.add_parser("remove", help="end a time-out; those of wider networks stay")
        removing.add_argument("network", metavar="ADDRESS_OR_NETWORK", help="as `list` shows it")

    def handle(self, *_: object, **options: object) -> None:
        """Do what was asked.

        Raises:
            CommandError: the network cannot be used, or Redis does not answer.
        """
        arguments = argparse.Namespace(**options)
        try:
            if arguments.action == "list":
                self._list(is_json=arguments.json)
            elif arguments.action == "add":
                self._add(arguments.network, seconds=arguments.hours * SECONDS_AN_HOUR)
            else:
                self._remove(arguments.network)
        except (BadNetwork, TimeoutsUnreachable) as error:
            raise CommandError(str(error)) from error

    def _list(self, *, is_json: bool) -> None:
        now = clock.now()
        found = address_timeouts.list_all(now=now)
        if is_json:
            lines = [
                {
                    "network": timeout.name,
                    "ends_at": timeout.ends_at.isoformat(),
                    "seconds_left": timeout.seconds_left(now),
                }
                for timeout in found
            ]
            self.stdout.write(orjson.dumps({"timeouts": lines}).decode())
            return
        self.stdout.write(f"{len(found)} timed out.")
        for timeout in found:
            self.stdout.write(f"{timeout.name:<43} until {_moment(timeout)}")

    def _add(self, network: str, *, seconds: int) -> None:
        timeout = address_timeouts.put(network, seconds=seconds, now=clock.now())
        self.stdout.write(f"{timeout.name} is timed out until {_moment(timeout)}.")

    def _remove(self, network: str) -> None:
        if address_timeouts.remove(network):
            self.stdout.write(f"The time-out of {network} has ended.")
        else:
            self.stdout.write(f"{network} has no time-out of its own; `timeouts list` shows those of wider networks.")


def _moment(timeout: AddressTimeout) -> str:
    return f"{timeout.ends_at:%Y-%m-%d %H:%M:%S} UTC"
