"""The limits come before the body, in the server that really runs."""

import json
import os
from collections.abc import Iterator

import pytest

from hordechat.contract.limits import MIB
from hordechat.local import stack
from tests import services
from tests.http.wire import Site, refusal
from tests.rate_limits.callers import CHAT, HEARTBEAT

VARIABLES = {
    "HORDE_RATE_LIMITS_ENABLED": "true",
    "HORDE_CHAT_REQUEST_2SEC_LIMIT_PER_IP": "100/second",
    "HORDE_CHAT_REQUEST_90MIN_LIMIT_PER_IP": "2/day",
    # A busy machine may be slow, and a call not counted would not be refused.
    "HORDE_REDIS_TIMEOUT_MILLISECONDS": "5000",
}


@pytest.fixture(scope="module")
def limited_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    log = tmp_path_factory.mktemp("limited") / "log"
    url = services.clone_for("limited")
    try:
        environment = {"DATABASE_URL": url, "REDIS_URL": os.environ["REDIS_URL"], **VARIABLES}
        with stack.api(environment, workers=1, threads=2, log=log) as api:
            yield Site(api=api, database_url=url, environment=environment, log=log)
    finally:
        services.drop(url)


def head(*lines: str) -> bytes:
    return "\r\n".join([f"POST {CHAT} HTTP/1.1", "Host: localhost", "apikey: 0000000000", *lines, "", ""]).encode()


@pytest.mark.spec("ORD-24", "RLM-08", "RLM-14")
def test_one_call_too_many_is_refused_before_its_body_is_sent(limited_site: Site) -> None:
    first = [limited_site.post(CHAT, b"no JSON", **{"X-Forwarded-For": f"198.51.100.{n}"}) for n in range(2)]

    unsent = limited_site.exchange(head(f"Content-Length: {MIB}", "X-Forwarded-For: 198.51.100.9"))
    unended = limited_site.exchange(head("Transfer-Encoding: chunked"), b"5\r\nno JS\r\n")
    too_large = limited_site.exchange(head(f"Content-Length: {1000 * MIB}"))

    assert [refusal(answer) for answer in first] == [(400, "BadRequest")] * 2
    assert [refusal(answer) for answer in (unsent, unended, too_large)] == [(429, "RateLimitExceeded")] * 3
    assert [first[0].headers["X-RateLimit-Remaining"], first[1].headers["X-RateLimit-Remaining"]] == ["1", "0"]
    assert 1 <= int(unsent.headers["Retry-After"]) <= 24 * 60 * 60
    assert limited_site.send("GET", HEARTBEAT).status == 200


@pytest.mark.spec("RLM-07")
def test_a_services_clients_are_counted_apart_by_the_server_that_runs(limited_site: Site) -> None:
    def manage(*arguments: str) -> dict[str, str]:
        answer = stack.manage(limited_site.environment, *arguments, "--json")
        assert answer.returncode == 0, answer.stderr
        printed: dict[str, str] = json.loads(answer.stdout)
        return printed

    service = manage("create_user", "relay", "--service")
    passkey = manage("proxy_passkey", str(service["id"]))["proxy_passkey"]
    clients = ["203.0.113.1", "203.0.113.1", "203.0.113.1", "203.0.113.2", "2001:db8::1"]

    answers = [
        limited_site.post(CHAT, b"no JSON", **{"Proxy-Authorization": passkey, "Proxied-For": client})
        for client in clients
    ]

    assert [answer.status for answer in answers] == [400, 400, 429, 400, 400]
