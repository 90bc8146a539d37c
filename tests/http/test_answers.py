"""What every answer carries, whatever was asked: headers, the one shape of refusals, and the site's own pages."""

import json
import re
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from hordechat.errors import ErrorCode
from hordechat.http.middleware import PUBLIC_HEADERS
from tests.http.wire import MODEL, Site, refusal

HEARTBEAT = "/api/v2/status/heartbeat"
CHAT = "/api/v2/generate/chat/async"
ROUTES = {
    ("post", CHAT),
    ("get", "/api/v2/generate/chat/status/{request_id}"),
    ("delete", "/api/v2/generate/chat/status/{request_id}"),
    ("post", "/api/v2/generate/text/async"),
    ("get", "/api/v2/generate/text/status/{request_id}"),
    ("delete", "/api/v2/generate/text/status/{request_id}"),
    ("get", "/api/v2/generate/text/request/{request_id}"),
    ("post", "/api/v2/generate/text/pop"),
    ("post", "/api/v2/generate/text/submit"),
    ("get", "/api/v2/find_user"),
    ("get", HEARTBEAT),
}


def public_headers(site: Site) -> dict[str, str]:
    return {**PUBLIC_HEADERS, "Horde-Node": f"node-one:{site.api.port}:2"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", HEARTBEAT, 200),
        ("GET", "/v2/status/heartbeat", 200),
        ("POST", CHAT, 400),
        ("GET", "/api/v2/nothing", 404),
        ("GET", "/v2/nothing", 404),
        ("PUT", CHAT, 405),
        ("GET", "/api/schema/", 200),
    ],
)
def test_every_answer_of_the_api_carries_the_public_headers(site: Site, method: str, path: str, status: int) -> None:
    answer = site.send(method, path)

    assert answer.status == status
    assert {name: answer.headers[name] for name in public_headers(site)} == public_headers(site)
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])


@pytest.mark.parametrize("path", [CHAT, "/v2/generate/text/pop", "/api/v2/nothing"])
def test_a_preflight_question_is_answered_at_once(site: Site, path: str) -> None:
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}

    answer = site.send("OPTIONS", path, headers=asked)

    assert (answer.status, answer.body) == (204, b"")
    assert {name: answer.headers[name] for name in public_headers(site)} == public_headers(site)


def test_each_answer_has_an_id_of_its_own_that_no_client_chooses(site: Site) -> None:
    answers = [site.send("GET", HEARTBEAT, headers={"X-Request-Id": "mine"}) for _ in range(2)]

    identifiers = {answer.headers["X-Request-Id"] for answer in answers}
    assert len(identifiers) == 2
    assert "mine" not in identifiers


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/api/v2/",
        "/api/v2/generate/chat/async/",
        "/api/v2/generate/chat/status/a/b",
        "/nothing",
        "/%00",
        "/%ff%fe",
        "/static/../manage.py",
        "/static/%2e%2e/manage.py",
        "/" + "a" * 10_000,
    ],
)
def test_an_unknown_route_is_refused_in_json(site: Site, path: str) -> None:
    assert refusal(site.send("GET", path)) == (404, "RouteNotFound")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", CHAT, "POST, OPTIONS"),
        ("PATCH", "/api/v2/generate/chat/status/x", "GET, DELETE, HEAD, OPTIONS"),
        ("DELETE", HEARTBEAT, "GET, HEAD, OPTIONS"),
        ("FETCH", HEARTBEAT, "GET, HEAD, OPTIONS"),
        ("TRACE", HEARTBEAT, "GET, HEAD, OPTIONS"),
        ("POST", "/healthz/live", "GET, HEAD"),
        ("POST", "/healthz/ready", "GET, HEAD"),
        ("OPTIONS", "/metrics", "GET, HEAD"),
    ],
)
def test_another_method_is_refused_in_json(site: Site, method: str, path: str, allowed: str) -> None:
    answer = site.send(method, path)

    assert refusal(answer) == (405, "MethodNotAllowed")
    assert answer.json["message"] == f"The method {method} is not allowed on this route."
    assert set(answer.headers["Allow"].split(", ")) == set(allowed.split(", "))


def test_a_method_cannot_be_smuggled_in_a_header(site: Site) -> None:
    assert refusal(site.send("POST", HEARTBEAT, b"", {"X-HTTP-Method-Override": "GET"})) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "a b", "localhost:port", "[::1", ""])
def test_another_host_is_refused_in_json(site: Site, host: str) -> None:
    answer = site.exchange(f"GET {HEARTBEAT} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    assert refusal(answer) == (400, "BadRequest")
    assert {name: answer.headers[name] for name in public_headers(site)} == public_headers(site)


@pytest.mark.parametrize("headers", [{}, {"apikey": ""}])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, b'{"model": "demo/echo", "messages": [{"role": "user", "content": "a"}]}'),
        ("/api/v2/generate/text/pop", b'{"name": "a", "models": ["abc"]}'),
        ("/api/v2/generate/text/submit", b'{"id": "x", "generation": "a"}'),
    ],
)
def test_a_missing_key_is_reported_like_a_missing_field(
    site: Site, path: str, body: bytes, headers: dict[str, str]
) -> None:
    answer = site.send("POST", path, body, headers)

    assert refusal(answer) == (400, "BadRequest")
    assert answer.json["errors"] == {"apikey": "The header is required; 0000000000 is the anonymous key."}


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        (b"unknown", (401, "InvalidAPIKey")),
        (b"k" * 10_000, (401, "InvalidAPIKey")),
        (b"' OR 1=1 --", (401, "InvalidAPIKey")),
        # The server in front of the application drops a header that is not ASCII.
        (b"\xe9\xff", (400, "BadRequest")),
    ],
    ids=["unknown", "long", "quoted", "not ASCII"],
)
def test_a_key_nobody_has_is_refused(site: Site, key: bytes, refused: tuple[int, str]) -> None:
    answer = site.send("POST", "/api/v2/generate/text/pop", b'{"name": "a", "models": ["abc"]}', {"apikey": key})

    assert refusal(answer) == refused


def test_a_body_is_judged_before_its_key(site: Site) -> None:
    answer = site.post(CHAT, b'{"messages": 1}', apikey="unknown")

    assert refusal(answer) == (400, "BadRequest")


def test_a_client_agent_of_any_bytes_and_length_is_stored(site: Site) -> None:
    site.pop()
    body = b'{"model": "%s", "messages": [{"role": "user", "content": "a"}], "max_tokens": 16}' % MODEL.encode()
    before = site.count("waiting_prompts")

    for agent in (b"\xff\xfe\xe9", b"a" * 5000):
        answer = site.send("POST", CHAT, body, {"apikey": site.key_of("client"), "Client-Agent": agent})
        assert answer.status == 202

    assert site.count("waiting_prompts") == before + 2


@pytest.mark.parametrize(
    "identifier", ["x", "%00", "%ff", "%ed%a0%80", "00000000-0000-0000-0000-000000000000", "a" * 1000, "%27%20OR%201=1"]
)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_id_nobody_has_is_not_found_whatever_its_form(site: Site, method: str, identifier: str) -> None:
    assert refusal(site.send(method, f"/api/v2/generate/chat/status/{identifier}")) == (404, "RequestNotFound")


@pytest.mark.parametrize("identifier", ["x", "", "00000000-0000-0000-0000-000000000000", "\ud83d\ude00", "x" * 1000])
def test_a_job_nobody_has_is_not_found(site: Site, identifier: str) -> None:
    body = b'{"id": "%s", "generation": "a"}' % identifier.encode("utf-16", "surrogatepass").decode("utf-16").encode()

    assert refusal(site.post("/api/v2/generate/text/submit", body)) == (404, "InvalidJobID")


@pytest.mark.parametrize("accept", ["text/html", "image/png", "application/xml;q=1", ";;;", ""])
def test_answers_json_whatever_the_client_says_it_accepts(site: Site, accept: str) -> None:
    answer = site.send("GET", f"{HEARTBEAT}?format=html", headers={"Accept": accept})

    assert (answer.status, answer.json) == (200, {"message": "OK", "version": "2"})
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"


def test_the_live_page_shows_which_start_of_the_process_answers(site: Site) -> None:
    answer = site.send("GET", "/healthz/live")

    assert (answer.status, answer.json) == (200, {"status": "ok", "instance": site.api.instance_id})
    assert answer.headers["X-Request-Id"]


def test_the_ready_page_shows_what_the_process_depends_on(site: Site) -> None:
    answer = site.send("GET", "/healthz/ready")

    assert answer.status == 200
    assert {key: answer.json[key] for key in ("status", "database", "redis")} == dict.fromkeys(
        ("status", "database", "redis"), "ok"
    )
    assert set(answer.json["beat"]) == {
        "abort_lapsed_leases",
        "expire_requests",
        "lapse_holds",
        "refresh_model_reference",
        "roll_up_statistics",
        "prune_shared_keys",
        "prune_revoked_keys",
    }


def test_metrics_count_requests_by_route_and_refusals_by_code(site: Site) -> None:
    site.send("GET", "/api/v2/generate/chat/status/x")
    site.send("GET", "/an/unknown/path")

    answer = site.send("GET", "/metrics")

    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    text = answer.body.decode()
    route = "api/v2/generate/chat/status/<str:request_id>"
    assert f'horde_http_requests_total{{method="GET",route="{route}",status="404"}}' in text
    assert 'horde_refusals_total{rc="RouteNotFound"}' in text
    assert "unknown/path" not in text


def test_the_description_of_the_api_lists_every_route_with_its_answers(site: Site) -> None:
    document = site.send("GET", "/api/schema/").json

    operations = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert document["openapi"] == "3.1.0"
    assert operations == ROUTES
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation["operationId"]
            assert operation["description"]
            assert [status for status in operation["responses"] if status.startswith("2")]
            placeholders = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
            assert placeholders == set(re.findall(r"{(\w+)}", path))


def test_the_description_refers_to_nothing_it_does_not_hold(site: Site) -> None:
    answer = site.send("GET", "/api/schema/")

    references = set(re.findall(r'"\$ref":\s*"([^"]+)"', answer.body.decode()))
    schemas = answer.json["components"]["schemas"]
    assert references
    assert {reference for reference in references if reference.rsplit("/", 1)[1] not in schemas} == set()
    assert {reference.rsplit("/", 1)[0] for reference in references} == {"#/components/schemas"}


def test_the_description_knows_every_return_code(site: Site) -> None:
    schemas = site.send("GET", "/api/schema/").json["components"]["schemas"]

    assert schemas["ErrorCode"]["enum"] == [code.value for code in ErrorCode]


def test_the_description_lists_the_refusals_any_route_may_give(site: Site) -> None:
    paths = site.send("GET", "/api/schema/").json["paths"]

    for method, path in ROUTES:
        common = {"400"} if path == HEARTBEAT else {"400", "429", "503"}
        assert common <= set(paths[path][method]["responses"]), path
        assert ("413" in paths[path][method]["responses"]) == (method == "post"), path


def test_the_description_says_that_kudos_are_numbers(site: Site) -> None:
    schemas = site.send("GET", "/api/schema/").json["components"]["schemas"]

    kudos = {
        name: property_["type"]
        for name, schema in schemas.items()
        for key, property_ in schema.get("properties", {}).items()
        if key in {"kudos", "evaluating_kudos", "reward"}
    }
    assert set(kudos) >= {"ChatStatus", "TextStatus", "UserDetails", "SubmittedAnswer", "QuotedAnswer", "SubmitAnswer"}
    assert set(kudos.values()) == {"number"}


def test_a_repeated_chat_submit_is_answered_as_described(site: Site) -> None:
    site.pop()
    body = {"model": MODEL, "messages": [{"role": "user", "content": "a"}], "horde": {"operation_key": str(uuid4())}}
    first, repeated = (site.post(CHAT, json.dumps(body).encode(), apikey=site.key_of("client")) for _ in range(2))
    schemas = site.send("GET", "/api/schema/").json["components"]["schemas"]
    described = schemas["UnqueuedAnswer"]["anyOf"]

    assert (first.status, repeated.status) == (202, 200)
    assert repeated.json["id"] == first.json["id"]
    assert described == [{"$ref": f"#/components/schemas/{name}"} for name in ("QuotedAnswer", "SubmittedAnswer")]
    assert set(schemas["SubmittedAnswer"]["required"]) == set(repeated.json) == {"id", "kudos"}


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=" + "a" * 300,
        "application/x-www-form-urlencoded; charset=utf-16",
    ],
    ids=["no boundary", "long boundary", "another encoding"],
)
def test_a_form_that_cannot_be_read_is_refused_in_json(site: Site, content_type: str) -> None:
    headers = {"Cookie": f"csrftoken={'a' * 32}", "Content-Type": content_type}

    assert refusal(site.send("POST", "/admin/login/", b"a=1", headers)) == (400, "BadRequest")


@pytest.mark.parametrize("key", ['"\\000aaaaaaaaaaaaaaaa"', "\u00e9\u00ff", "a" * 5000, "' OR 1=1 --"])
def test_a_session_nobody_has_leads_to_the_login_page(site: Site, key: str) -> None:
    answer = site.send("GET", "/admin/", headers={"Cookie": f"sessionid={key}".encode("latin-1")})

    assert (answer.status, answer.headers["Location"]) == (302, "/admin/login/?next=/admin/")


def test_the_admins_login_page_and_all_it_links_to_are_served_here(site: Site) -> None:
    assert site.send("GET", "/admin/").status == 302
    page = site.send("GET", "/admin/login/?next=/admin/")
    links = re.findall(r'(?:href|src)="([^"]+\.(?:css|js))"', page.body.decode())

    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "/static/admin/css/base.css" in links
    for link in links:
        asset = site.send("GET", link)
        assert urlsplit(link).netloc == ""
        assert asset.status == 200
        assert asset.headers["Content-Type"].startswith(("text/css", "text/javascript"))
