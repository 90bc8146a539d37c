"""An API key is known by keyed hashes alone, in every pepper that is still configured."""

import hashlib
import hmac

import pytest
from pytest_django.fixtures import Settings

from billing_app.models import ApiKey
from billing_app.rules.accounts import ANONYMOUS_USER_ID
from billing_app.selectors import keys, users
from billing_app.services import accounts
from tests.billing.books import NOW

OLD = "old:" + "o" * 32
NEW = "new:" + "n" * 32


def pepper(settings: Settings, *peppers: str) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"api_key_peppers": ",".join(peppers)})


def keyed(secret: str, key: str) -> str:
    return hmac.new(secret.encode(), key.encode(), hashlib.sha256).hexdigest()


def test_a_key_has_one_hash_for_each_pepper_the_newest_first(settings: Settings) -> None:
    pepper(settings, NEW, OLD)

    assert keys.candidate_hashes("abc") == [keyed("n" * 32, "abc"), keyed("o" * 32, "abc")]
    assert keys.hash_new("abc") == ("new", keyed("n" * 32, "abc"))


def test_the_public_key_has_the_same_hash_under_any_pepper(settings: Settings) -> None:
    pepper(settings, NEW)

    assert keys.candidate_hashes("0000000000") == [hashlib.sha256(b"0000000000").hexdigest()]


@pytest.mark.parametrize("key", ["", "k" * 101, "k" * 50_000_000])
def test_what_cannot_be_a_key_is_not_hashed(key: str) -> None:
    assert keys.candidate_hashes(key) == []


def test_a_key_of_any_characters_is_hashed() -> None:
    assert len(keys.candidate_hashes("\udcff\x00é")[0]) == 64


@pytest.mark.django_db
def test_the_public_key_belongs_to_the_anonymous_user() -> None:
    row = ApiKey.objects.select_related("user").get(key_hash__in=keys.candidate_hashes("0000000000"))

    assert (row.user_id, row.user.unique_alias, row.user.concurrency) == (ANONYMOUS_USER_ID, "Anonymous#0", 500)


@pytest.mark.django_db
def test_a_key_stays_valid_while_its_pepper_is_configured(settings: Settings) -> None:
    pepper(settings, OLD)
    owner = accounts.create_user(alias="alice", now=NOW)

    pepper(settings, NEW, OLD)
    during_rotation = users.find_by_key(owner.api_key, now=NOW)
    pepper(settings, NEW)
    after_rotation = users.find_by_key(owner.api_key, now=NOW)

    assert during_rotation is not None
    assert during_rotation.id == owner.id
    assert after_rotation is None
