"""Moderators can look up requests, generations and workers, and change none of them."""

import pytest
from django.test import Client

from billing_app.models import User
from tests.horde import Horde, one_value

TABLES = {"request": "waiting_prompts", "generation": "processing_gens", "worker": "workers"}
APPS = {"request": "requests_app", "generation": "requests_app", "worker": "workers_app"}


@pytest.fixture
def moderator(horde: Horde) -> Client:
    """Sign a staff user in, on a site with one request in a worker's hands."""
    horde.in_flight(messages=[{"role": "user", "content": "a secret of the client"}])
    client = Client()
    client.force_login(User.objects.create(login="mod", alias="mod", is_staff=True))
    return client


@pytest.mark.parametrize("model", TABLES)
def test_a_list_and_its_rows_can_be_read_and_show_no_text(moderator: Client, model: str) -> None:
    row_id = one_value(f"SELECT id::text FROM {TABLES[model]}")

    pages = [
        moderator.get(f"/admin/{APPS[model]}/{model}/"),
        moderator.get(f"/admin/{APPS[model]}/{model}/", {"q": row_id}),
        moderator.get(f"/admin/{APPS[model]}/{model}/{row_id}/change/"),
    ]

    for page in pages:
        assert page.status_code == 200
        assert row_id in page.text
        assert "a secret of the client" not in page.text


@pytest.mark.parametrize("model", TABLES)
@pytest.mark.parametrize("term", ["nothing", "00000000-0000-0000-0000-000000000000", "'; --", "9" * 40])
def test_a_search_for_something_else_finds_nothing(moderator: Client, model: str, term: str) -> None:
    page = moderator.get(f"/admin/{APPS[model]}/{model}/", {"q": term})

    assert page.status_code == 200
    assert "0 " in page.text
    assert one_value(f"SELECT id::text FROM {TABLES[model]}") not in page.text


@pytest.mark.parametrize("model", TABLES)
@pytest.mark.parametrize("action", ["change", "delete"])
def test_nothing_can_be_changed(moderator: Client, model: str, action: str) -> None:
    row_id = one_value(f"SELECT id::text FROM {TABLES[model]}")

    answer = moderator.post(f"/admin/{APPS[model]}/{model}/{row_id}/{action}/", {"n": 0, "post": "yes"})

    assert answer.status_code == 403
    assert one_value(f"SELECT count(*) FROM {TABLES[model]}") == 1
