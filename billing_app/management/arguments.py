"""What several commands read from the command line."""

import argparse
from dataclasses import dataclass

from billing_app.errors import UserRefused
from billing_app.selectors import users


@dataclass(frozen=True, slots=True)
class NamedUser:
    """A user as an operator wrote them."""

    id: int
    unique_alias: str | None
    """None for a number alone."""


def named_user(text: str) -> NamedUser:
    """Read a user from the command line: the number, or the whole alias it is the end of."""
    alias, _, number = text.rpartition("#")
    try:
        return NamedUser(id=int(number), unique_alias=text if alias else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a user's number nor an alias with its #number") from None


def get_user_id(named: NamedUser) -> int:
    """Return the id of the user an operator named; whoever uses it finds out whether there is one.

    Raises:
        UserRefused: the number is that of somebody else than the alias, so one of them is a slip.
    """
    if named.unique_alias is not None:
        found = users.find_unique_alias(user_id=named.id)
        if found not in {None, named.unique_alias}:
            raise UserRefused(f"The user with the id {named.id} is {found}, not {named.unique_alias}.")
    return named.id
