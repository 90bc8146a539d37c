"""A database that goes away costs its time, and nothing is left broken when it is back."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.http.wire import Site, refusal

STATUS = "/api/v2/generate/chat/status/00000000-0000-0000-0000-000000000000"
HEARTBEAT = "/api/v2/status/heartbeat"
RELAYED = {"Proxy-Authorization": "anything", "Proxied-For": "203.0.113.1"}
END_CONNECTIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


@contextmanager
def administrator(site: Site) -> Iterator[tuple[psycopg.Connection, str]]:
    parts = urlsplit(site.database_url)
    with psycopg.connect(parts._replace(path="/postgres").geturl(), autocommit=True) as connection:
        yield connection, parts.path.strip("/")


def test_connections_the_database_ended_are_replaced_unseen(site: Site) -> None:
    assert site.send("GET", STATUS).status == 404
    with administrator(site) as (connection, name):
        ended = connection.execute(END_CONNECTIONS, [name]).fetchall()

    answers = [refusal(site.send("GET", STATUS)) for _ in range(4)]

    assert ended
    assert answers == [(404, "RequestNotFound")] * 4


@pytest.mark.slow
def test_without_a_database_every_route_that_needs_it_says_when_to_come_back(site: Site) -> None:
    with administrator(site) as (connection, name):
        closing = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        connection.execute(closing.format(sql.Identifier(name), sql.SQL("false")))
        connection.execute(END_CONNECTIONS, [name])
        try:
            answer = site.send("GET", STATUS)
            ready = site.send("GET", "/healthz/ready")
            alive = [site.send("GET", path).status for path in ("/healthz/live", HEARTBEAT, "/metrics")]
            relayed = site.send("GET", HEARTBEAT, headers=RELAYED)
        finally:
            connection.execute(closing.format(sql.Identifier(name), sql.SQL("true")))

    errors = [line for line in site.log.read_text(encoding="utf-8").splitlines() if " ERROR " in line]
    assert errors
    assert [line for line in errors if "[-]" in line] == [], "each error names its request"
    assert refusal(answer) == (503, "ServiceUnavailable")
    assert answer.headers["Retry-After"] == "2"
    assert (ready.status, ready.json["database"]) == (503, "unreachable")
    assert alive == [200, 200, 200]
    assert relayed.status == 200, "no passkey is known while none can be read"
    assert refusal(site.send("GET", STATUS)) == (404, "RequestNotFound")
