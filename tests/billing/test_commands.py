"""Operators make users and keys and check the books with `manage.py`."""

import io
import json
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from billing_app.models import Account, ProxyPasskey, User
from billing_app.selectors import users
from billing_app.selectors.proxy_passkeys import KnownPasskeys
from tests.billing.books import NOW, balance_id, open_balance

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery staple"


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue()


def test_create_user_prints_one_line_of_json() -> None:
    output = run("create_user", "alice", "--kudos", "100.5", "--trusted", "--json")

    made = json.loads(output)
    assert output.count("\n") == 1
    assert list(made) == ["id", "alias", "api_key"]
    profile = users.find_by_key(made["api_key"], now=NOW)
    assert profile is not None
    assert (profile.id, profile.unique_alias) == (made["id"], made["alias"])
    assert (profile.kudos, profile.is_trusted) == (Decimal("100.50"), True)


def test_create_user_makes_a_service_account_only_when_asked() -> None:
    made = [json.loads(run("create_user", "alice", *flags, "--json")) for flags in (["--service"], [])]

    assert [User.objects.get(id=user["id"]).is_service for user in made] == [True, False]


def test_create_user_tells_a_person_that_the_key_is_shown_once() -> None:
    lines = run("create_user", "alice").splitlines()

    profile = users.find_by_key(lines[1], now=NOW)
    assert profile is not None
    assert lines[0] == f"Made the user {profile.unique_alias}. Their API key, shown this once:"


def test_create_user_makes_staff_with_a_password_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOD_PASSWORD", PASSWORD)

    run("create_user", "mod", "--staff", "--login", "mod", "--password-env", "MOD_PASSWORD")

    user = User.objects.get(login="mod")
    assert user.check_password(PASSWORD)
    assert (user.is_staff, user.is_superuser) == (True, False)
    with pytest.raises(CommandError, match="The login 'mod' is taken"):
        run("create_user", "mod", "--staff", "--login", "mod", "--password-env", "MOD_PASSWORD")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["a" * 31], "The alias has to be 1 to 30"),
        (["a", "--kudos", "many"], "'many' is not a number"),
        (["a", "--kudos", "-3"], "The kudos have to be 0 or more"),
        (["a", "--staff"], "login of a staff user"),
        (["a", "--staff", "--login", "m"], "A staff user needs a password."),
        (["a", "--staff", "--login", "m", "--password-env", "UNSET"], "variable UNSET holds no password"),
        (["a", "--staff", "--login", "m", "--password-env", "WEAK"], "The password cannot be used: .*12 characters"),
        (["a", "--login", "m"], "Only staff users have a login"),
    ],
)
def test_create_user_refuses_with_a_sentence(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEAK", "short")
    monkeypatch.delenv("UNSET", raising=False)
    before = User.objects.count()

    with pytest.raises(CommandError, match=complaint):
        run("create_user", *arguments)

    assert User.objects.count() == before


def test_create_key_prints_one_line_of_json() -> None:
    owner = json.loads(run("create_user", "alice", "--json"))

    made = json.loads(run("create_key", owner["alias"], "--name", "laptop", "--json"))

    assert (made["id"], made["alias"]) == (owner["id"], owner["alias"])
    assert made["api_key"] != owner["api_key"]
    assert users.find_by_key(made["api_key"], now=NOW) is not None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["99999"], "There is no user with the id 99999."),
        (["0"], "reached by the public key alone"),
        (["alice"], "neither a user's number nor an alias"),
        (["alice#0"], "The user with the id 0 is Anonymous#0, not alice#0."),
        (["9" * 30], "There is no user with the id 9+."),
    ],
)
def test_create_key_refuses_with_a_sentence(arguments: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        run("create_key", *arguments)


def make_service() -> str:
    owner = json.loads(run("create_user", "relay", "--service", "--json"))
    return str(owner["id"])


def test_proxy_passkey_prints_one_line_of_json() -> None:
    user_id = make_service()

    made = json.loads(run("proxy_passkey", user_id, "--json"))
    again = json.loads(run("proxy_passkey", user_id, "--json"))
    revoked = [json.loads(run("proxy_passkey", user_id, "--revoke", "--json")) for _ in range(2)]

    assert list(made) == ["id", "alias", "proxy_passkey"]
    assert (made["id"], made["alias"]) == (int(user_id), f"relay#{user_id}")
    assert made["proxy_passkey"] != again["proxy_passkey"]
    assert revoked == [{"id": int(user_id), "alias": f"relay#{user_id}", "revoked": was} for was in (True, False)]


def test_proxy_passkey_tells_a_person_that_it_is_shown_once() -> None:
    user_id = make_service()

    lines = run("proxy_passkey", user_id).splitlines()

    assert lines[0] == f"Made the proxy passkey of relay#{user_id}, shown this once:"
    assert KnownPasskeys().is_known(lines[1], now=NOW)
    assert run("proxy_passkey", user_id, "--revoke") == f"Revoked the proxy passkey of relay#{user_id}.\n"
    assert run("proxy_passkey", user_id, "--revoke") == f"relay#{user_id} has no proxy passkey.\n"
    assert not KnownPasskeys().is_known(lines[1], now=NOW)


def test_proxy_passkey_is_for_services_alone() -> None:
    user_id = json.loads(run("create_user", "alice", "--json"))["id"]

    with pytest.raises(CommandError, match=f"alice#{user_id} gets no proxy passkey: only a service account"):
        run("proxy_passkey", str(user_id))
    with pytest.raises(CommandError, match="There is no user with the id 99999"):
        run("proxy_passkey", "99999")
    with pytest.raises(CommandError, match=f"is alice#{user_id}, not relay#{user_id}"):
        run("proxy_passkey", f"relay#{user_id}", "--revoke")

    assert not ProxyPasskey.objects.exists()


def test_reconcile_reports_sound_books() -> None:
    open_balance("100")

    assert json.loads(run("ledger", "reconcile", "--json")) == {
        "sum": "0.00", "accounts": 4, "transfers": 1, "open_holds": 0, "drifted": [],
    }  # fmt: skip
    assert run("ledger", "reconcile") == "4 accounts, 1 transfers, 0 open holds, sum over all 0.00.\n"


def test_reconcile_fails_and_names_the_accounts_that_drifted() -> None:
    account = open_balance("100")
    anonymous = balance_id(0)
    Account.objects.filter(id=account).update(posted_kudos=101)
    Account.objects.filter(id=anonymous).update(posted_kudos=-1)
    output = io.StringIO()

    with pytest.raises(CommandError) as failure:
        call_command("ledger", "reconcile", "--json", stdout=output)

    assert json.loads(output.getvalue())["drifted"] == [
        {"account": anonymous, "posted": "-1.00", "transferred": "0.00", "held": "0.00", "open_holds": "0.00"},
        {"account": account, "posted": "101.00", "transferred": "100.00", "held": "0.00", "open_holds": "0.00"},
    ]
    assert str(failure.value) == (
        f"The ledger has drifted: account {anonymous} has -1.00, by its transfers 0.00; "
        f"account {account} has 101.00, by its transfers 100.00."
    )
