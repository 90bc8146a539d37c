"""A service has one passkey, known by its value alone, and only while the service is in good standing."""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from billing_app.errors import NoProxyService, UnknownUser
from billing_app.models import ProxyPasskey, User
from billing_app.selectors.proxy_passkeys import KnownPasskeys
from billing_app.services import accounts, proxy_passkeys
from hordechat.infra import sql
from tests.billing.books import NOW

OLD = "old:" + "o" * 32
NEW = "new:" + "n" * 32


def make_service(alias: str = "service") -> int:
    return accounts.create_user(alias=alias, is_service=True, now=NOW).id


def make_passkey(user_id: int) -> str:
    return proxy_passkeys.create(user_id=user_id, now=NOW).proxy_passkey


def is_known(passkey: str) -> bool:
    """Ask a process that has read nothing yet."""
    return KnownPasskeys().is_known(passkey, now=NOW)


@pytest.mark.django_db
def test_a_passkey_is_known_and_nothing_else_is() -> None:
    passkeys = [make_passkey(make_service("one")), make_passkey(make_service("two"))]

    guesses = ["", "anything", "0000000000", passkeys[0][:-1], passkeys[0] + "x", "x" * 10_000, "\udcff\x00é"]
    guesses += ProxyPasskey.objects.values_list("passkey_hash", flat=True)

    assert [is_known(passkey) for passkey in passkeys] == [True, True]
    assert [guess for guess in guesses if is_known(guess)] == []


@pytest.mark.django_db
def test_the_passkey_itself_is_not_stored_nor_shown_by_accident() -> None:
    owner = proxy_passkeys.create(user_id=make_service(), now=NOW)

    row = ProxyPasskey.objects.get(user_id=owner.id)

    assert len(owner.proxy_passkey) == 43
    assert owner.proxy_passkey not in f"{row.passkey_hash} {row} {owner!r}"
    assert row.created_at == NOW


@pytest.mark.django_db
def test_a_new_passkey_takes_the_place_of_the_old_one() -> None:
    user_id = make_service()
    first = make_passkey(user_id)
    second = make_passkey(user_id)

    assert (is_known(first), is_known(second)) == (False, True)
    assert ProxyPasskey.objects.count() == 1


@pytest.mark.django_db
def test_a_passkey_ends_when_it_is_revoked() -> None:
    user_id = make_service()
    passkey = make_passkey(user_id)

    first = proxy_passkeys.revoke(user_id=user_id)
    second = proxy_passkeys.revoke(user_id=user_id)

    assert (first.was_known, second.was_known) == (True, False)
    assert not is_known(passkey)


@pytest.mark.django_db
@pytest.mark.parametrize("change", [{"is_service": False}, {"is_flagged": True}, {"is_deleted": True}])
def test_only_a_service_in_good_standing_has_one(change: dict[str, bool]) -> None:
    user_id = make_service()
    passkey = make_passkey(user_id)

    User.objects.filter(id=user_id).update(**change)

    assert not is_known(passkey)
    with pytest.raises(NoProxyService):
        make_passkey(user_id)
    assert proxy_passkeys.revoke(user_id=user_id).was_known


@pytest.mark.django_db
def test_nobody_has_none() -> None:
    with pytest.raises(UnknownUser):
        make_passkey(99_999)
    with pytest.raises(UnknownUser):
        proxy_passkeys.revoke(user_id=99_999)
    with pytest.raises(NoProxyService):
        make_passkey(0)


@pytest.mark.django_db
def test_a_passkey_stays_valid_while_its_pepper_is_configured(settings: Settings) -> None:
    def pepper(*peppers: str) -> None:
        settings.HORDE = settings.HORDE.model_copy(update={"api_key_peppers": ",".join(peppers)})

    pepper(OLD)
    passkey = make_passkey(make_service())

    pepper(NEW, OLD)
    during_rotation = is_known(passkey)
    pepper(NEW)

    assert (during_rotation, is_known(passkey)) == (True, False)


@pytest.mark.django_db
def test_the_copy_is_read_once_in_five_seconds() -> None:
    known = KnownPasskeys()
    user_id = make_service()
    passkey = make_passkey(user_id)
    moments = [0, 1, 4.999, 5, 9.9, 10]

    with CaptureQueriesContext(connection) as queries:
        answers = [known.is_known(passkey, now=NOW + timedelta(seconds=seconds)) for seconds in moments]
    proxy_passkeys.revoke(user_id=user_id)

    assert answers == [True] * 6
    assert len(queries) == 3
    assert known.is_known(passkey, now=NOW + timedelta(seconds=14.9))
    assert not known.is_known(passkey, now=NOW + timedelta(seconds=15))


@pytest.mark.django_db
def test_a_clock_set_back_does_not_keep_a_copy() -> None:
    known = KnownPasskeys()
    user_id = make_service()
    passkey = make_passkey(user_id)
    assert known.is_known(passkey, now=NOW)
    proxy_passkeys.revoke(user_id=user_id)

    assert known.is_known(passkey, now=NOW - timedelta(seconds=4))
    assert not known.is_known(passkey, now=NOW - timedelta(hours=1))


@pytest.fixture
def unreadable(committed: None) -> Iterator["Outage"]:
    outage = Outage()
    yield outage
    outage.end()


class Outage:
    """A table that no query finds while it lasts."""

    def __init__(self) -> None:
        self.is_on = False

    def begin(self) -> None:
        sql.execute("ALTER TABLE proxy_passkeys RENAME TO proxy_passkeys_away", {})
        self.is_on = True

    def end(self) -> None:
        if self.is_on:
            sql.execute("ALTER TABLE proxy_passkeys_away RENAME TO proxy_passkeys", {})
        self.is_on = False


def test_while_the_database_cannot_be_read_the_last_copy_counts(
    unreadable: Outage, caplog: pytest.LogCaptureFixture
) -> None:
    known, fresh = KnownPasskeys(), KnownPasskeys()
    passkey = make_passkey(make_service())
    assert known.is_known(passkey, now=NOW)
    unreadable.begin()

    later = [NOW + timedelta(seconds=seconds) for seconds in (5, 6, 9.9, 10)]
    answers = [(known.is_known(passkey, now=now), fresh.is_known(passkey, now=now)) for now in later]
    unreadable.end()

    assert answers == [(True, False)] * 4
    assert [record.getMessage() for record in caplog.records] == [
        "the proxy passkeys cannot be read (ProgrammingError): the last copy counts"
    ] * 4, "each of the two processes tries at 5 and at 10"
    assert fresh.is_known(passkey, now=NOW + timedelta(seconds=15))


def test_threads_that_come_at_once_all_get_the_first_copy(committed: None) -> None:
    passkey = make_passkey(make_service())
    known = KnownPasskeys()
    barrier = threading.Barrier(4)
    answers: list[bool] = []

    def ask() -> None:
        barrier.wait(timeout=60)
        answers.append(known.is_known(passkey, now=NOW))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 4
