"""API keys are deleted 30 days after they were revoked, and no other key is."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from billing_app import tasks
from billing_app.models import ApiKey
from billing_app.rules.accounts import ANONYMOUS_USER_ID, PUBLIC_KEY
from billing_app.selectors import users
from billing_app.services import accounts, revoked_keys
from hordechat.infra import clock
from requests_app.selectors import lapsed
from tests.billing.books import NOW
from tests.plans import plan_of
from tests.races import at_once

db = pytest.mark.django_db
LONG_AGO = NOW - timedelta(days=30)


def make_keys(*revoked_at: datetime | None) -> list[int]:
    """Make a user with one key for each moment, and one in use."""
    user_id = accounts.create_user(alias="alice", now=NOW).id
    keys = [
        ApiKey(user_id=user_id, key_hash=f"{number:064}", pepper_id="first", revoked_at=moment)
        for number, moment in enumerate(revoked_at)
    ]
    return [key.id for key in ApiKey.objects.bulk_create(keys)]


@db
def test_what_was_revoked_30_days_ago_goes_and_all_else_stays() -> None:
    old, recent, in_use = make_keys(LONG_AGO, LONG_AGO + timedelta(seconds=1), None)
    before = set(ApiKey.objects.values_list("id", flat=True))

    assert revoked_keys.prune_all(now=NOW) == 1
    assert revoked_keys.prune_all(now=NOW) == 0

    assert set(ApiKey.objects.values_list("id", flat=True)) == before - {old}
    assert {recent, in_use} < before


@db
def test_the_public_key_stays_even_if_somebody_revoked_it() -> None:
    ApiKey.objects.filter(user_id=ANONYMOUS_USER_ID).update(revoked_at=LONG_AGO)

    assert revoked_keys.prune_all(now=NOW) == 0
    assert lapsed.get_backlog(now=NOW).by_task()["prune_revoked_keys"] == 0

    ApiKey.objects.filter(user_id=ANONYMOUS_USER_ID).update(revoked_at=None)
    assert users.find_by_key(PUBLIC_KEY, now=NOW) is not None


@db
def test_works_in_bounded_batches_the_longest_revoked_first() -> None:
    third, first, second = make_keys(*(LONG_AGO - timedelta(days=days) for days in (1, 3, 2)))

    assert revoked_keys.prune_batch(now=NOW, limit=2) == 2

    assert set(ApiKey.objects.filter(id__in=(first, second, third)).values_list("id", flat=True)) == {third}
    assert [revoked_keys.prune_batch(now=NOW, limit=2) for _ in range(2)] == [1, 0]


@pytest.mark.usefixtures("committed")
def test_runs_at_the_same_moment_do_the_work_of_one() -> None:
    make_keys(*[LONG_AGO] * 50)

    done = at_once(*[lambda: revoked_keys.prune_all(now=NOW)] * 4)

    assert sum(done) == 50
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


@db
def test_the_backlog_is_what_the_task_works_off() -> None:
    now = clock.now()
    make_keys(now - timedelta(days=31), now - timedelta(days=29), None)

    assert lapsed.get_backlog(now=now).by_task()["prune_revoked_keys"] == 1
    tasks.prune_revoked_keys()
    assert lapsed.get_backlog(now=now).by_task()["prune_revoked_keys"] == 0


@db
def test_keys_in_use_are_not_read() -> None:
    make_keys(*[None] * 5000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE api_keys")

    plan = plan_of(lambda: revoked_keys.prune_batch(now=NOW))

    assert "api_keys_revoked_at" in plan
    assert "Seq Scan" not in plan
