"""The pages for people: the API's reference, from assets of the site's own, and the way to it."""

import re

import pytest
from django.test import Client


def test_the_root_leads_to_the_reference() -> None:
    answer = Client().get("/")

    assert (answer.status_code, answer["Location"]) == (302, "/api/")
    assert Client().post("/").json()["rc"] == "MethodNotAllowed"


@pytest.mark.django_db
def test_the_reference_loads_nothing_from_elsewhere() -> None:
    page = Client().get("/api/")

    assets = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert page.status_code == 200
    assert len(assets) >= 3
    for asset in assets:
        assert asset.startswith("/static/")
        answer = Client().get(asset)
        assert answer.status_code == 200
        answer.close()


@pytest.mark.django_db
def test_the_document_is_openapi_3_1_and_names_every_public_route() -> None:
    document = Client().get("/api/schema/").json()

    assert document["openapi"].startswith("3.1")
    assert {(method, path) for path, item in document["paths"].items() for method in item} == {
        ("get", "/api/v2/find_user"),
        ("post", "/api/v2/generate/chat/async"),
        ("get", "/api/v2/generate/chat/status/{request_id}"),
        ("delete", "/api/v2/generate/chat/status/{request_id}"),
        ("post", "/api/v2/generate/text/async"),
        ("get", "/api/v2/generate/text/status/{request_id}"),
        ("delete", "/api/v2/generate/text/status/{request_id}"),
        ("get", "/api/v2/generate/text/request/{request_id}"),
        ("post", "/api/v2/generate/text/pop"),
        ("post", "/api/v2/generate/text/submit"),
        ("get", "/api/v2/status/heartbeat"),
    }
    body = document["components"]["schemas"]["ChatBody"]
    assert body["examples"]
    assert body["additionalProperties"] is False
