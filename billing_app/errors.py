"""Refusals of keys and users; and faults of the ledger's callers and of operators' input, which no client causes."""

from collections.abc import Sequence
from decimal import Decimal
from typing import ClassVar

from billing_app.rules.accounts import AMOUNT_LIMIT
from hordechat.errors import ErrorCode, HordeError


class UnknownAccounts(LookupError):
    """A transfer names accounts that do not exist; nothing of its batch was written."""

    def __init__(self, account_ids: Sequence[int]) -> None:
        super().__init__(f"There is no account {', '.join(map(str, account_ids))}; nothing was posted.")
        self.account_ids = tuple(account_ids)


class InsufficientKudos(Exception):
    """An account's free balance does not cover a hold; nothing was held.

    It has no return code: what a requester is told depends on what they asked for, which this app does not know.
    """

    def __init__(self, *, needed_kudos: Decimal, free_kudos: Decimal) -> None:
        super().__init__(f"{needed_kudos} kudos are needed and {free_kudos} are free.")
        self.needed_kudos = needed_kudos
        self.free_kudos = free_kudos


class UserRefused(ValueError):
    """A user or key cannot be made like this; the message says what to change."""


class NotAnAmount(UserRefused):
    """The ledger cannot hold these kudos as they are."""

    def __init__(self, kudos: Decimal) -> None:
        super().__init__(
            f"The kudos have to be 0 or more and below {AMOUNT_LIMIT:f}, with at most two decimals, not {kudos}."
        )


class UnknownUser(UserRefused):
    """Nobody has this id."""

    def __init__(self, user_id: int) -> None:
        super().__init__(f"There is no user with the id {user_id}.")


class NoProxyService(UserRefused):
    """The user is none whose word about other people's addresses is taken."""

    def __init__(self, unique_alias: str) -> None:
        super().__init__(
            f"{unique_alias} gets no proxy passkey: only a service account that is neither flagged nor deleted has "
            "one. `manage.py create_user NAME --service` makes a service account."
        )


class UnknownSharedKey(UserRefused):
    """No shared key has this id."""

    def __init__(self) -> None:
        super().__init__("There is no shared key with this id.")


class TooManySharedKeys(UserRefused):
    """The user has as many shared keys as they may."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"The user has {limit} shared keys that have not expired, the most they may have: expire one.")


class LoginTaken(UserRefused):
    """Somebody has this login."""

    def __init__(self, login: str) -> None:
        super().__init__(f"The login {login!r} is taken: choose another one, or keep the user who has it.")


class InvalidApiKey(HordeError):
    """Nobody has this API key, or it was revoked."""

    code: ClassVar = ErrorCode.INVALID_API_KEY

    def __init__(self) -> None:
        super().__init__("No user has this API key. Ask the operator of this site for one, or use 0000000000.")


class UserNotFound(HordeError):
    """Nobody has the key a look-up names."""

    code: ClassVar = ErrorCode.USER_NOT_FOUND

    def __init__(self) -> None:
        super().__init__("No user has this API key.")


class DeletedUser(HordeError):
    """The account is about to be deleted and asks for nothing any more."""

    code: ClassVar = ErrorCode.DELETED_USER

    def __init__(self) -> None:
        super().__init__("This account is scheduled for deletion.")


class SharedKeyEmpty(HordeError):
    """All a shared key could spend is spent."""

    code: ClassVar = ErrorCode.SHARED_KEY_EMPTY

    def __init__(self) -> None:
        super().__init__("This shared key has no kudos left.")


class SharedKeyExpired(HordeError):
    """A shared key's time is over."""

    code: ClassVar = ErrorCode.SHARED_KEY_EXPIRED

    def __init__(self) -> None:
        super().__init__("This shared key has expired.")


class SharedKeyInsufficientKudos(HordeError):
    """A shared key has less left than a request may cost."""

    code: ClassVar = ErrorCode.SHARED_KEY_INSUFFICIENT_KUDOS

    def __init__(self, *, left_kudos: Decimal, required_kudos: Decimal) -> None:
        super().__init__(
            f"This shared key has {left_kudos} kudos left and the request needs {required_kudos}. Ask for a shorter "
            "output, or the key's owner for more."
        )
