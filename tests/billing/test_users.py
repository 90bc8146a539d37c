"""Users are made with accounts, a key and start kudos, and found by that key."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from pytest_django.fixtures import DjangoAssertNumQueries

from billing_app.errors import LoginTaken, UnknownUser, UserRefused
from billing_app.models import Account, ApiKey, Transfer, User
from billing_app.rules.accounts import ANONYMOUS_USER_ID
from billing_app.selectors import users
from billing_app.selectors.users import UserProfile
from billing_app.services import accounts
from tests.billing.books import NOW

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery staple"


def test_a_new_user_has_two_accounts_a_key_and_start_kudos() -> None:
    owner = accounts.create_user(alias="alice", kudos=Decimal("12.50"), is_trusted=True, now=NOW)

    user = User.objects.get(id=owner.id)
    assert owner.unique_alias == user.unique_alias == str(user) == f"alice#{user.id}"
    assert (user.is_trusted, user.is_staff, user.concurrency, user.created_at) == (True, False, 30, NOW)
    assert not user.has_usable_password()
    assert list(
        Account.objects.filter(user=user).order_by("kind").values_list("kind", "posted_kudos", "minimum_kudos")
    ) == [("balance", Decimal("12.50"), Decimal(25)), ("escrow", Decimal(0), Decimal(0))]
    start = Transfer.objects.get()
    assert (start.idempotency_key, start.debit_account, start.kind) == (f"start:{user.id}", -3, "start")


def test_a_key_is_neither_stored_nor_shown_again() -> None:
    owner = accounts.create_user(alias="alice", now=NOW)

    row = ApiKey.objects.get(user_id=owner.id)
    assert len(owner.api_key) == 22
    assert owner.api_key not in repr(owner)
    assert owner.api_key not in {row.key_hash, row.name, row.pepper_id}


def test_one_statement_finds_the_user_of_a_key(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    owner = accounts.create_user(alias="alice", kudos=Decimal(40), is_trusted=True, now=NOW)

    with django_assert_num_queries(1):
        profile = users.find_by_key(owner.api_key, now=NOW + timedelta(minutes=2, seconds=3.9))

    assert profile == UserProfile(
        id=owner.id,
        unique_alias=f"alice#{owner.id}",
        kudos=Decimal(40),
        evaluating_kudos=Decimal(0),
        concurrency=30,
        is_trusted=True,
        is_moderator=False,
        is_flagged=False,
        is_service=False,
        is_education=False,
        is_customizer=False,
        is_pseudonymous=False,
        is_deleted=False,
        contact=None,
        account_age_seconds=123,
    )


def test_finds_the_anonymous_user_whose_id_is_falsy() -> None:
    profile = users.find_by_key("0000000000", now=NOW)

    assert profile is not None
    assert (profile.id, profile.unique_alias, profile.concurrency) == (0, "Anonymous#0", 500)
    assert profile.account_age_seconds == 0


@pytest.mark.parametrize("key", ["", "unknown", "k" * 5000])
def test_finds_nobody_for_an_unknown_key(key: str) -> None:
    assert users.find_by_key(key, now=NOW) is None


def test_finds_nobody_for_a_revoked_key() -> None:
    owner = accounts.create_user(alias="alice", now=NOW)
    ApiKey.objects.filter(user_id=owner.id).update(revoked_at=NOW)

    assert users.find_by_key(owner.api_key, now=NOW) is None


def test_a_further_key_leaves_the_first_one_valid() -> None:
    owner = accounts.create_user(alias="alice", kudos=Decimal(5), now=NOW)

    further = accounts.create_key(user_id=owner.id, name="laptop", now=NOW)

    found = [users.find_by_key(key, now=NOW) for key in (owner.api_key, further.api_key)]
    assert [profile and (profile.id, profile.kudos) for profile in found] == [(owner.id, Decimal(5))] * 2
    assert Account.objects.filter(user_id=owner.id).count() == 2


def test_a_superuser_signs_in_and_gets_accounts_with_the_first_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)

    call_command("createsuperuser", login="root", interactive=False, verbosity=0)
    root = User.objects.get(login="root")
    key = accounts.create_key(user_id=root.id, now=NOW)

    assert (root.is_staff, root.is_superuser, root.is_active) == (True, True, True)
    assert root.check_password(PASSWORD)
    profile = users.find_by_key(key.api_key, now=NOW)
    assert profile is not None
    assert profile.unique_alias == f"root#{root.id}"


def test_refuses_a_login_that_is_taken() -> None:
    accounts.create_user(alias="mod", is_staff=True, login="mod", password=PASSWORD, now=NOW)
    before = User.objects.count()

    with pytest.raises(LoginTaken, match="The login 'mod' is taken"):
        accounts.create_user(alias="other", is_staff=True, login="mod", password=PASSWORD, now=NOW)

    assert User.objects.count() == before


def test_the_database_refuses_a_second_user_of_one_login() -> None:
    User.objects.create(alias="a", login="same")

    with pytest.raises(IntegrityError, match="users_login_unique"), transaction.atomic():
        User.objects.create(alias="b", login="same")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"alias": ""}, "alias has to be 1 to 30"),
        ({"alias": "a" * 31}, "alias has to be 1 to 30"),
        ({"alias": " a"}, "alias has to be 1 to 30"),
        ({"alias": "a\nb"}, "alias has to be 1 to 30"),
        ({"alias": "a\x00b"}, "alias has to be 1 to 30"),
        ({"kudos": Decimal(-1)}, "kudos have to be 0 or more"),
        ({"kudos": Decimal("0.001")}, "kudos have to be 0 or more"),
        ({"kudos": Decimal("NaN")}, "kudos have to be 0 or more"),
        ({"kudos": Decimal("1e20")}, "0 or more and below 1000000000000000, with"),
        ({"is_staff": True, "password": PASSWORD}, "login of a staff user has to be 1 to 150"),
        ({"is_staff": True, "login": "mod"}, "A staff user needs a password."),
        ({"is_staff": True, "login": "mod", "password": "short"}, "at least 12 characters"),
        ({"login": "mod"}, "Only staff users have a login and a password"),
        ({"password": PASSWORD}, "Only staff users have a login and a password"),
    ],
)
def test_refuses_a_user_that_cannot_be_made(values: dict[str, object], complaint: str) -> None:
    before = User.objects.count()

    with pytest.raises(UserRefused, match=complaint):
        accounts.create_user(**{"alias": "alice", "now": NOW, **values})  # type: ignore[arg-type] # rows of a table

    assert User.objects.count() == before


def test_refuses_a_key_for_nobody_and_for_everybody() -> None:
    with pytest.raises(UnknownUser, match=r"There is no user with the id 99999\."):
        accounts.create_key(user_id=99999, now=NOW)
    with pytest.raises(UserRefused, match=r"The anonymous user is reached by the public key alone\."):
        accounts.create_key(user_id=ANONYMOUS_USER_ID, now=NOW)

    assert ApiKey.objects.count() == 1


def test_a_fresh_instance_has_real_flags_before_it_is_read_back() -> None:
    user = User.objects.create(alias="a")

    assert (user.is_trusted, user.is_staff, user.is_superuser, user.is_active) == (False, False, False, True)
