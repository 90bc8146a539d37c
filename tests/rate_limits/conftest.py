"""The limits switched on, with counts of their own and a clock that stands still."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import time_machine
from django.core.cache import caches
from pytest_django.fixtures import Settings
from time_machine import Traveller

from hordechat.settings.env import Environment
from tests.rate_limits.callers import Limits, count_in, patient

MOMENT = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def limits(settings: Settings) -> Limits:
    """Switch the limits on as they are by default."""
    count_in(settings, patient(settings.CACHES["rate_limits"]["LOCATION"]))
    caches["rate_limits"].delete_pattern("*")  # type: ignore[attr-defined] # django-redis has it
    environment: Environment = settings.HORDE
    limits = Limits(settings, environment)
    limits.set()
    return limits


@pytest.fixture
def clock() -> Iterator[Traveller]:
    with time_machine.travel(MOMENT, tick=False) as traveller:
        yield traveller
