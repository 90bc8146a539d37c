"""The admin shows people, keys and kudos to staff, and lets nobody change them."""

import pytest
from django.test import Client

from billing_app.models import Account, ApiKey, Hold, SharedKey, Transfer, User
from billing_app.rules.accounts import HouseAccount
from billing_app.services import accounts, ledger, shared_keys
from tests.billing.books import NOW, balance_id, hold, open_balance, transfer

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery staple"
LISTS = ["user", "account", "apikey", "transfer", "hold", "sharedkey"]
MODELS = {
    "user": User,
    "account": Account,
    "apikey": ApiKey,
    "transfer": Transfer,
    "hold": Hold,
    "sharedkey": SharedKey,
}


@pytest.fixture
def staff(client: Client) -> Client:
    """A signed-in moderator without any permission of Django's, and a few rows to look at."""
    owner = accounts.create_user(alias="mod", is_staff=True, login="mod", password=PASSWORD, now=NOW)
    payer = open_balance("100")
    ledger.post([transfer("reply:a", payer, balance_id(owner.id), "10")], now=NOW)
    ledger.post([transfer("tax:a", payer, HouseAccount.TAX, "1")], now=NOW)
    hold("upfront:a", payer, "5")
    hold("upfront:b", payer, "6")
    shared_keys.create(user_id=owner.id, name="for the class", now=NOW)
    client.force_login(User.objects.get(id=owner.id))
    return client


def url(name: str, rest: str = "") -> str:
    return f"/admin/billing_app/{name}/{rest}"


@pytest.mark.parametrize("name", LISTS)
def test_a_list_and_each_of_its_rows_can_be_read(staff: Client, name: str) -> None:
    row = MODELS[name]._default_manager.latest("id")

    assert staff.get(url(name)).status_code == 200
    assert staff.get(url(name, f"{row.pk}/change/")).status_code == 200


def test_the_anonymous_user_can_be_read(staff: Client) -> None:
    assert "Anonymous#0" in staff.get(url("user", "0/change/")).content.decode()


@pytest.mark.parametrize("name", LISTS)
def test_nothing_can_be_added_changed_or_deleted(staff: Client, name: str) -> None:
    row = MODELS[name]._default_manager.latest("id")
    before = list(MODELS[name]._default_manager.order_by("id").values())

    answers = [
        staff.get(url(name, "add/")),
        staff.post(url(name, "add/"), {"alias": "x"}),
        staff.post(url(name, f"{row.pk}/change/"), {"alias": "x"}),
        staff.post(url(name, f"{row.pk}/delete/"), {"post": "yes"}),
        staff.post(url(name), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}),
    ]

    assert [answer.status_code for answer in answers[:4]] == [403] * 4
    assert list(MODELS[name]._default_manager.order_by("id").values()) == before


@pytest.mark.parametrize("name", LISTS)
def test_no_hash_of_a_key_or_password_is_shown(staff: Client, name: str) -> None:
    secrets = {
        *ApiKey.objects.values_list("key_hash", flat=True),
        User.objects.get(login="mod").password,
    }

    for row in MODELS[name]._default_manager.all():
        page = staff.get(url(name, f"{row.pk}/change/")).content.decode() + staff.get(url(name)).content.decode()

        assert not [secret for secret in secrets if secret in page]


@pytest.mark.parametrize(
    ("name", "term", "found"),
    [
        ("user", "mod", ["mod"]),
        ("user", "Mod", []),
        ("user", "mo", []),
        ("user", "Anonymous#0", ["Anonymous"]),
        ("user", "0", ["Anonymous"]),
        ("user", "9" * 40, []),
        ("transfer", "reply:a", ["reply:a"]),
        ("transfer", "reply:", []),
        ("transfer", "-1", ["tax:a"]),
        ("hold", "upfront:b", ["upfront:b"]),
        ("hold", "upfront", []),
    ],
)
def test_a_search_finds_by_the_exact_number_or_text(staff: Client, name: str, term: str, found: list[str]) -> None:
    page = staff.get(url(name), {"q": term})

    assert page.status_code == 200
    rows = page.context["cl"].queryset
    shown = {"user": "alias", "transfer": "idempotency_key", "hold": "key"}[name]
    assert [getattr(row, shown) for row in rows] == found


def test_a_list_of_shared_keys_shows_the_start_of_each_id_alone(staff: Client) -> None:
    key = SharedKey.objects.get()
    whole, start = str(key.id), f"{str(key.id)[:8]}…"

    lists = [staff.get(url("sharedkey")), staff.get(url("sharedkey"), {"q": str(key.user_id)})]
    found = staff.get(url("sharedkey"), {"q": whole})

    for page in lists:
        assert start in page.content.decode()
        assert whole not in page.content.decode()
        assert key.id.hex not in page.content.decode()
    assert start in found.content.decode()


def test_strangers_are_sent_to_sign_in(client: Client) -> None:
    for name in LISTS:
        answer = client.get(url(name))

        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/admin/login/")
