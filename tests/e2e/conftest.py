"""A real site for end-to-end tests: API processes on a database of their own, reached over sockets."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import httpx2
import psycopg
import pytest

from hordechat.local import stack
from hordechat.local.stack import Api
from tests import services
from tests.horde import Answer, Horde, Person


@dataclass
class LiveHorde(Horde):
    """The API over sockets, and a look into its database."""

    api: Api = field(kw_only=True)
    environment: Mapping[str, str] = field(kw_only=True)

    def __post_init__(self) -> None:
        """Open the connections every call shares."""
        self.sockets = httpx2.Client(timeout=30)

    def __enter__(self) -> Self:
        """Return the horde; its connections are closed at the end, whatever happens."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.sockets.close()

    def call(
        self, method: str, path: str, body: object = None, *, api_key: str | None = None, **headers: str
    ) -> Answer:
        """Send one request over a socket."""
        response = self.sockets.request(
            method,
            f"{self.api.url}/api/v2/{path}",
            content=None if body is None else json.dumps(body),
            headers=headers | ({} if api_key is None else {"apikey": api_key}),
        )
        return response.status_code, response.json()

    def value(self, statement: str, *parameters: object) -> Any:
        """Return the first column of a statement's first row, from the site's own database."""
        with psycopg.connect(self.environment["DATABASE_URL"], autocommit=True) as connection:
            row = connection.execute(statement, parameters).fetchone()
        return None if row is None else row[0]

    def reconcile(self) -> dict[str, Any]:
        """Return what `manage.py ledger reconcile` says."""
        done = stack.manage(self.environment, "ledger", "reconcile", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report


def make_live_person(environment: Mapping[str, str], *arguments: str) -> Person:
    """Make a user as an operator does."""
    done = stack.manage(environment, "create_user", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    return Person(id=made["id"], api_key=made["api_key"])


@pytest.fixture(scope="session")
def live_environment() -> Iterator[dict[str, str]]:
    """Name a database of the live site's own, and this process's Redis."""
    url = services.clone_for("live")
    yield {"DATABASE_URL": url, "REDIS_URL": os.environ["REDIS_URL"]}
    services.drop(url)


@pytest.fixture(scope="session")
def live(live_environment: dict[str, str]) -> Iterator[LiveHorde]:
    """Run the API for the session's end-to-end tests; each test submits requests of its own."""
    requester = make_live_person(live_environment, "requester", "--kudos", "1000000")
    owner = make_live_person(live_environment, "owner", "--trusted")
    with (
        stack.api(live_environment) as api,
        LiveHorde(requester=requester, owner=owner, api=api, environment=live_environment) as horde,
    ):
        yield horde
