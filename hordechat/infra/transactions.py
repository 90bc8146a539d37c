"""Run a use case again when PostgreSQL undid it for a deadlock or a serialisation failure (decision S5)."""

import functools
import logging
import random
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection
from psycopg import errors as postgres

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

ATTEMPTS = 4
"""Tries in all: the first and three more."""

PAUSE_SECONDS = (0.025, 0.1)
"""The shortest and longest pause after the first failure; it grows with each try."""

logger = logging.getLogger(__name__)


def retry_on_conflict(use_case: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Repeat a whole use case that lost against another transaction, at most three times.

    The use case opens its own durable transaction, so a repeat starts from nothing. Any other error passes through.
    """

    @functools.wraps(use_case)
    def repeat(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return use_case(*args, **kwargs)
            except OperationalError as error:
                is_conflict = isinstance(error.__cause__, (postgres.DeadlockDetected, postgres.SerializationFailure))
                if not is_conflict or attempt == ATTEMPTS or connection.in_atomic_block:
                    raise
                logger.warning(
                    "lost against another transaction", extra={"use_case": use_case.__qualname__, "attempt": attempt}
                )
                time.sleep(random.uniform(*PAUSE_SECONDS) * attempt)  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable: the last try returns or raises")  # pragma: no cover

    return repeat
