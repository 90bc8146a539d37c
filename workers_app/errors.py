"""Refusals around workers."""

from typing import ClassVar

from hordechat.errors import ErrorCode, HordeError

MAX_TOLD_TIMEOUT_SECONDS = 4 * 24 * 3600
"""Of a longer time-out the refusal does not tell how long it lasts."""


class UnknownWorker(Exception):
    """Nobody's worker has this name; for operators, who see the message."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no worker named '{name}'.")


class AddressTimedOut(HordeError):
    """Requests from this address are refused for a while."""

    code: ClassVar = ErrorCode.TIMEOUT_ADDRESS

    def __init__(self, *, seconds: int) -> None:
        wait = "" if seconds > MAX_TOLD_TIMEOUT_SECONDS else f" for another {seconds} seconds"
        super().__init__(f"Requests from your address are refused{wait}.")


class AnonymousForbiddenWorker(HordeError):
    """The anonymous user cannot run workers."""

    code: ClassVar = ErrorCode.ANONYMOUS_FORBIDDEN_WORKER

    def __init__(self) -> None:
        super().__init__("Workers need an account of their own; the anonymous key cannot pop.")


class WrongCredentials(HordeError):
    """The API key is not the key of the worker's owner."""

    code: ClassVar = ErrorCode.WRONG_CREDENTIALS

    def __init__(self, *, worker_name: str) -> None:
        super().__init__(f"The API key is not the key of the owner of the worker '{worker_name}'.")


class WorkerFlaggedMaintenance(HordeError):
    """The owner is flagged; none of the owner's workers is served."""

    code: ClassVar = ErrorCode.WORKER_FLAGGED_MAINTENANCE

    def __init__(self) -> None:
        super().__init__("The account of this worker's owner is flagged, so its workers are in maintenance.")


class WorkerMaintenance(HordeError):
    """The worker is in maintenance, and nothing its owner waits for was found."""

    code: ClassVar = ErrorCode.WORKER_MAINTENANCE

    def __init__(self, *, owners_words: str | None) -> None:
        super().__init__(owners_words or "The owner of this worker has put it into maintenance.")


class TooManyWorkers(HordeError):
    """A new worker would be one more than its owner may have until they are trusted."""

    code: ClassVar = ErrorCode.TOO_MANY_WORKERS

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"Until you are trusted you may have {limit} workers, and you have them.")


class TooManyWorkersTrusted(HordeError):
    """A new worker would be one more than a trusted owner may have."""

    code: ClassVar = ErrorCode.TOO_MANY_WORKERS_TRUSTED

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"You may have {limit} workers, and you have them.")


class TooManySameAddresses(HordeError):
    """A new worker would be one more than its owner may have at one address."""

    code: ClassVar = ErrorCode.TOO_MANY_SAME_ADDRESSES

    def __init__(self, *, limit: int) -> None:
        super().__init__(f"You may have {limit} workers at one address, and you have them.")


class InvalidPriorityUsername(HordeError):
    """A priority user is not named by alias and id."""

    code: ClassVar = ErrorCode.INVALID_PRIORITY_USERNAME

    def __init__(self, *, name: str) -> None:
        super().__init__(f"'priority_usernames' holds '{name[:64]}', which is not of the form alias#id.")
