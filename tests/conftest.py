"""What every test may use."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from hordechat.infra import redis
from tests.horde import Horde, make_person

ANONYMOUS = Path(__file__).parent.parent / "billing_app" / "migrations" / "0001_anonymous.sql"
TABLES = (
    "finished_generations, generation_totals, site_modes, prompt_filters, proxy_passkeys, queue_rows, processing_gens, "
    "waiting_prompts, workers, transfers, shared_keys, api_keys, accounts, users"
)

# One commit has one verdict: the same examples each time, none refused because the machine was busy.
# `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """Do nothing: `tests.services` made the database before Django read its settings."""


@pytest.fixture
def committed(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let a test commit for real; afterwards the tables are as a migration leaves them."""
    with django_db_blocker.unblock():
        yield
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {TABLES} CASCADE")
            cursor.execute(ANONYMOUS.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def closed_breaker() -> None:
    """Let no test inherit a circuit another one opened."""
    redis.breaker.reset()


@pytest.fixture
def horde(db: None) -> Horde:
    """Walk requests inside the test's transaction: a requester with kudos and a trusted worker owner."""
    return make_horde()


@pytest.fixture
def committed_horde(committed: None) -> Horde:
    """Walk requests with real commits."""
    return make_horde()


def make_horde() -> Horde:
    """Make the two people of a walk."""
    return Horde(requester=make_person("requester", kudos=10_000), owner=make_person("owner", is_trusted=True))
