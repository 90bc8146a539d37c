"""Refusals around workers."""

from typing import ClassVar

from hordechat.errors import ErrorCode, HordeError


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
