"""A beat task that breaks in the middle has done nothing, and the next run does all of it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, transaction
from pytest_django import Settings

from billing_app.selectors import ledger
from billing_app.services import holds
from hordechat.infra import clock
from requests_app.services import expiry, faults
from tests.horde import Horde, one_value
from tests.races import behind_a_lock

REQUESTS = 5


def lapse_leases(horde: Horde) -> None:
    for _ in range(REQUESTS):
        horde.in_flight()


def expire_requests(horde: Horde) -> None:
    for _ in range(REQUESTS):
        horde.queued()


def overdue_holds(horde: Horde) -> None:
    now = clock.now()
    account = one_value("SELECT id FROM accounts WHERE user_id = %s AND kind = 'balance'", [horde.requester.id])
    with transaction.atomic():
        for number in range(REQUESTS):
            holds.place(
                account_id=account,
                kudos=Decimal(1),
                key=f"x:{number}",
                cause=uuid4(),
                now=now,
                expires_at=now + timedelta(seconds=1),
            )


LOCK_WORKERS = "SELECT 1 FROM workers FOR UPDATE"
LOCK_ACCOUNTS = "SELECT count(*) FROM (SELECT 1 FROM accounts WHERE user_id > 0 FOR UPDATE) AS locked"
SNAPSHOT = """
    SELECT (
               (SELECT array_agg((n, faulted, faulted_jobs)::text ORDER BY id) FROM waiting_prompts),
               (SELECT array_agg((faulted, finished_at)::text ORDER BY id) FROM processing_gens),
               (SELECT array_agg(request_id ORDER BY request_id) FROM queue_rows),
               (SELECT array_agg((key, resolution)::text ORDER BY key) FROM holds),
               (SELECT array_agg((posted_kudos, held_kudos)::text ORDER BY id) FROM accounts),
               (SELECT array_agg((aborted_jobs, uncompleted_jobs)::text ORDER BY id) FROM workers)
           )::text
"""


@pytest.mark.parametrize(
    ("prepare", "run", "last_lock"),
    [
        pytest.param(lapse_leases, faults.abort_lapsed, LOCK_WORKERS, id="abort lapsed leases"),
        pytest.param(expire_requests, expiry.expire_batch, LOCK_ACCOUNTS, id="expire requests"),
        pytest.param(overdue_holds, holds.lapse_batch, LOCK_ACCOUNTS, id="lapse holds"),
    ],
)
def test_a_broken_run_leaves_everything_to_the_next(
    committed_horde: Horde,
    settings: Settings,
    prepare: Callable[[Horde], None],
    run: Callable[..., int],
    last_lock: str,
) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 20, "free_output_floor": 10})
    prepare(committed_horde)
    late: datetime = clock.now() + timedelta(hours=1)
    before: Any = one_value(SNAPSHOT)

    with behind_a_lock(last_lock) as line:
        broken = line.join(lambda: run(now=late))
        line.cut_off()
        with pytest.raises(OperationalError):
            broken.result(timeout=10)

    assert one_value(SNAPSHOT) == before
    assert run(now=late) == REQUESTS
    assert one_value(SNAPSHOT) != before
    assert run(now=late) == 0
    assert ledger.reconcile().is_sound
