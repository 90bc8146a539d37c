"""Many workers pop at once: each slot goes to one of them, nothing servable is hidden, and rewards are paid once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection, connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_app.selectors import ledger
from hordechat.contract.limits import MAX_WORKERS
from requests_app.models import QueueRow, Request
from requests_app.rules import queue_order
from tests.horde import MODEL, Horde, make_person, one_value
from tests.races import another_connection, at_once, behind_a_lock_on, without_waiting

CONNECTIONS = 16
REQUESTS = 500


@pytest.mark.slow
def test_sixteen_workers_hand_five_hundred_requests_out_once_each_and_in_order(committed_horde: Horde) -> None:
    horde = committed_horde
    one_value("UPDATE users SET concurrency = 500 WHERE id = %s RETURNING 1", [horde.requester.id])
    for number in range(CONNECTIONS):
        horde.pop(name=f"worker {number}", prompt_jobs=None)
    for number in range(REQUESTS):
        horde.submit() if number % 2 else horde.submit_text(models=[MODEL])
    order = list(Request.objects.order_by("-order_key", "created", "id").values_list("id", flat=True))

    def work(number: int) -> list[str]:
        taken: list[str] = []
        try:
            while (generation_id := horde.pop(name=f"worker {number}", prompt_jobs=None)[1]["id"]) is not None:
                taken.append(generation_id)
        finally:
            connections.close_all()
        return taken

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        taken = [generation_id for each in pool.map(work, range(CONNECTIONS)) for generation_id in each]

    assert len(taken) == len(set(taken)) == REQUESTS, "each slot once, and no servable request was hidden"
    assert one_value("SELECT sum(n) FROM waiting_prompts") == 0
    assert one_value("SELECT count(*) FROM queue_rows") == 0
    with connection.cursor() as cursor:
        # In the order of the claims, which their transactions are numbered in; answers come back in any other.
        cursor.execute("SELECT request_id FROM processing_gens ORDER BY xmin::text::bigint")
        claimed = [request_id for (request_id,) in cursor]
    places = {request_id: place for place, request_id in enumerate(order)}
    displaced = [abs(places[request_id] - place) for place, request_id in enumerate(claimed)]
    assert max(displaced) <= 2 * CONNECTIONS, "in order, up to as many as are popping at the same moment"


def test_new_workers_at_once_stay_within_their_owners_limit(committed_horde: Horde) -> None:
    one_value("UPDATE users SET is_trusted = false WHERE id = %s RETURNING 1", [committed_horde.owner.id])

    answers = at_once(*[lambda number=number: committed_horde.pop(name=f"worker {number}") for number in range(12)])

    assert sorted(status for status, _ in answers) == [200] * MAX_WORKERS + [403] * (12 - MAX_WORKERS)
    assert {body["rc"] for status, body in answers if status != 200} == {"TooManyWorkers"}
    assert one_value("SELECT count(*) FROM workers") == MAX_WORKERS


def test_a_batch_and_single_pops_share_the_slots_of_one_request(committed_horde: Horde) -> None:
    committed_horde.queued_text(params={"n": 20}, models=[MODEL])
    for number in range(8):
        committed_horde.pop_text(name=f"worker {number}", models=["org/other"])

    answers = at_once(
        *[
            lambda number=number: committed_horde.pop_text(name=f"worker {number}", amount=3 if number % 2 else 1)
            for number in range(8)
        ]
    )

    ids = [generation_id for _, body in answers for generation_id in body["ids"]]
    assert len(set(ids)) == len(ids) == 16
    assert one_value("SELECT n FROM waiting_prompts") == 4
    assert one_value("SELECT count(*) FROM processing_gens") == 16


def test_a_batch_takes_slots_that_came_back_while_it_waited(committed_horde: Horde) -> None:
    request_id = committed_horde.queued_text(params={"n": 3}, models=[MODEL])
    first = committed_horde.pop_text(amount=2)[1]["ids"]

    with behind_a_lock_on(request_id) as line:
        batch = line.join(lambda: committed_horde.pop_text(name="another", amount=3))
        one_value("UPDATE processing_gens SET faulted = true WHERE id = ANY(%s::uuid[]) RETURNING 1", [first])
        one_value("UPDATE waiting_prompts SET n = n + 2 RETURNING 1")

    status, body = batch.result()
    assert (status, len(body["ids"])) == (200, 3)
    assert one_value("SELECT n FROM waiting_prompts") == 0
    assert one_value("SELECT count(*) FROM queue_rows") == 0


def test_a_paused_worker_gets_no_copy_of_a_request_that_is_being_deleted(committed_horde: Horde) -> None:
    committed_horde.pop()
    stranger = make_person("stranger")
    committed_horde.pop(name="paused worker", api_key=stranger.api_key)
    one_value("UPDATE workers SET paused = true WHERE name = 'paused worker' RETURNING 1")
    request_id = committed_horde.queued()

    with another_connection() as other, other.transaction():
        other.execute("DELETE FROM queue_rows WHERE request_id = %s", [request_id])
        other.execute("DELETE FROM waiting_prompts WHERE id = %s", [request_id])
        answer = without_waiting(lambda: committed_horde.pop(name="paused worker", api_key=stranger.api_key))

    assert (answer[0], answer[1]["id"]) == (200, None)


def test_pops_at_the_same_moment_are_rewarded_once(committed_horde: Horde) -> None:
    committed_horde.pop()
    one_value(
        "UPDATE workers SET uptime_seconds = 590, last_check_in = last_check_in - interval '40 seconds' RETURNING 1"
    )

    answers = at_once(*[committed_horde.pop] * 8)

    assert {status for status, _ in answers} == {200}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'uptime'") == 1
    assert committed_horde.kudos(committed_horde.owner) == Decimal("27.50")
    assert ledger.reconcile().is_sound


AGES = st.integers(0, 3000)
BALANCES = st.integers(-50, 5000)


@pytest.mark.django_db
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mix=st.lists(st.tuples(AGES, BALANCES), min_size=2, max_size=12))
def test_the_order_is_that_of_balances_that_age_by_fifty_each_ten_seconds(
    horde: Horde, mix: list[tuple[int, int]]
) -> None:
    """Compare with a naive model: every ten seconds of the clock each waiting request gains 50."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM processing_gens")
        cursor.execute("DELETE FROM queue_rows")
        cursor.execute("DELETE FROM waiting_prompts")
    horde.pop()
    now = datetime(2026, 1, 1, 12, 0, 7, tzinfo=UTC)
    naive: list[tuple[int, datetime, str]] = []
    for age, balance in mix:
        request_id = horde.submit()[1]["id"]
        activated = now - timedelta(seconds=age)
        key = queue_order.order_key(seed=balance, activated_at=activated)
        QueueRow.objects.filter(request_id=request_id).update(order_key=key, created=activated)
        Request.objects.filter(id=request_id).update(order_key=key, created=activated)
        ticks = int(now.timestamp()) // 10 - int(activated.timestamp()) // 10
        naive.append((-(balance + 50 * ticks), activated, request_id))

    handed = [horde.pop()[1]["id"] for _ in mix]

    requests = [str(one_value("SELECT request_id FROM processing_gens WHERE id = %s", [job])) for job in handed]
    assert requests == [request_id for *_, request_id in sorted(naive)]
