"""Shared keys are deleted 30 days after they expired, unless a request still refers to them."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from billing_app.models import SharedKey
from hordechat.infra import clock
from requests_app import tasks
from requests_app.selectors import lapsed
from requests_app.services import expired_keys, expiry
from tests.horde import Horde, count_rows, one_value
from tests.plans import plan_of
from tests.races import at_once, behind_a_lock, without_waiting

NOW = clock.now()
LONG_AGO = NOW - timedelta(days=30)


def expired(horde: Horde, *expires_at: datetime | None) -> list[str]:
    return [horde.share_key(horde.requester, expires_at=moment) for moment in expires_at]


def ask_under(horde: Horde, key: str, *, expires_at: datetime = LONG_AGO) -> str:
    """Submit a request under a key and let the key expire; the request waits on."""
    horde.pop()
    status, body = horde.submit(api_key=key)
    assert status == 202, body
    SharedKey.objects.filter(id=key).update(expires_at=expires_at)
    request_id: str = body["id"]
    return request_id


def remaining() -> set[str]:
    return {str(key_id) for key_id in SharedKey.objects.values_list("id", flat=True)}


def test_what_expired_30_days_ago_goes_and_all_else_stays(horde: Horde) -> None:
    _, recent, endless = expired(horde, LONG_AGO, LONG_AGO + timedelta(seconds=1), None)

    assert expired_keys.prune_all(now=NOW) == 1
    assert expired_keys.prune_all(now=NOW) == 0

    assert remaining() == {recent, endless}


def test_works_in_bounded_batches_the_longest_expired_first(horde: Horde) -> None:
    third, *_ = expired(horde, *(LONG_AGO - timedelta(days=days) for days in (1, 3, 2)))

    assert expired_keys.prune_batch(now=NOW, limit=2) == 2
    assert remaining() == {third}
    assert [expired_keys.prune_batch(now=NOW, limit=2) for _ in range(2)] == [1, 0]


def test_one_in_use_stays_and_holds_up_no_other(committed_horde: Horde) -> None:
    horde = committed_horde
    in_use, *_ = expired(horde, None, LONG_AGO, LONG_AGO)
    request_id = ask_under(horde, in_use, expires_at=LONG_AGO - timedelta(days=1))

    assert lapsed.get_backlog(now=NOW).by_task()["prune_shared_keys"] == 2
    assert [expired_keys.prune_batch(now=NOW, limit=1) for _ in range(3)] == [1, 1, 0]
    assert remaining() == {in_use}
    assert lapsed.get_backlog(now=NOW).by_task()["prune_shared_keys"] == 0

    assert horde.reply(horde.pop()[1]["id"])[0] == 200
    assert horde.status(request_id)[1]["done"] is True
    assert one_value("SELECT used_kudos > 1 FROM shared_keys") is True, "the reply is counted against it"
    expiry.expire_all(now=clock.now() + timedelta(hours=1))
    assert expired_keys.prune_all(now=NOW) == 1


def test_one_that_is_being_changed_comes_with_a_later_run(committed_horde: Horde) -> None:
    expired(committed_horde, LONG_AGO, LONG_AGO)

    with behind_a_lock("SELECT 1 FROM shared_keys ORDER BY id LIMIT 1 FOR NO KEY UPDATE"):
        beside = without_waiting(lambda: expired_keys.prune_all(now=NOW))

    assert beside == 1
    assert expired_keys.prune_all(now=NOW) == 1


def test_runs_at_the_same_moment_do_the_work_of_one(committed_horde: Horde) -> None:
    expired(committed_horde, *[LONG_AGO] * 50)

    done = at_once(*[lambda: expired_keys.prune_all(now=NOW)] * 4)

    assert sum(done) == 50
    assert count_rows("shared_keys") == {"shared_keys": 0}


def test_a_client_is_told_that_it_expired_and_later_that_nobody_has_it(horde: Horde) -> None:
    [key] = expired(horde, clock.now() - timedelta(days=31))
    horde.pop()

    assert (horde.submit(api_key=key)[0], horde.submit(api_key=key)[1]["rc"]) == (403, "SharedKeyExpired")
    assert (horde.submit_text(api_key=key)[0], horde.submit_text(api_key=key)[1]["rc"]) == (403, "SharedKeyExpired")
    tasks.prune_shared_keys()

    assert (horde.submit(api_key=key)[0], horde.submit(api_key=key)[1]["rc"]) == (401, "InvalidAPIKey")
    assert (horde.submit_text(api_key=key)[0], horde.submit_text(api_key=key)[1]["rc"]) == (401, "InvalidAPIKey")
    assert count_rows("waiting_prompts") == {"waiting_prompts": 0}


@pytest.mark.parametrize("look", ["prune", "backlog", "foreign key"])
def test_requests_are_found_by_their_key_and_keys_by_their_end(horde: Horde, look: str) -> None:
    with connection.cursor() as cursor:
        for statement in (FULL_KEYS, FULL_REQUESTS):
            cursor.execute(statement, [horde.requester.id])
        cursor.execute("ANALYZE shared_keys, waiting_prompts")

    plan = plan_of(
        {
            "prune": lambda: expired_keys.prune_batch(now=NOW),
            "backlog": lambda: lapsed.get_backlog(now=NOW),
            "foreign key": lambda: one_value(CHECK),
        }[look]
    )

    assert "waiting_prompts_shared_key" in plan
    assert "Seq Scan on waiting_prompts" not in plan
    assert ("shared_keys_expires_at" in plan) is (look != "foreign key")


CHECK = """
SELECT 1
  FROM ONLY waiting_prompts AS x
 WHERE '9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e' OPERATOR(pg_catalog.=) shared_key_id
   FOR KEY SHARE OF x
"""
"""The foreign key's own question when a key is deleted, as PostgreSQL words it."""

FULL_KEYS = """
INSERT INTO shared_keys (id, user_id, expires_at)
SELECT gen_random_uuid(), %s, now() + make_interval(days => number - 100)
  FROM generate_series(1, 3000) AS number
"""
FULL_REQUESTS = """
INSERT INTO waiting_prompts (id, user_id, n, jobs, max_length, created, expiry)
SELECT gen_random_uuid(), %s, 1, 1, 16, now(), now()
  FROM generate_series(1, 20000) AS number
"""
