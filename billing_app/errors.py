"""Faults of the ledger's callers and of operators' input. No client causes one, so none carries a return code."""

from collections.abc import Sequence


class UnknownAccounts(LookupError):
    """A transfer names accounts that do not exist; nothing of its batch was written."""

    def __init__(self, account_ids: Sequence[int]) -> None:
        super().__init__(f"There is no account {', '.join(map(str, account_ids))}; nothing was posted.")
        self.account_ids = tuple(account_ids)


class UserRefused(ValueError):
    """A user or key cannot be made like this; the message says what to change."""


class UnknownUser(UserRefused):
    """Nobody has this id."""

    def __init__(self, user_id: int) -> None:
        super().__init__(f"There is no user with the id {user_id}.")


class LoginTaken(UserRefused):
    """Somebody has this login."""

    def __init__(self, login: str) -> None:
        super().__init__(f"The login {login!r} is taken: choose another one, or keep the user who has it.")
