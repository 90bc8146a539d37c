"""What a user has waiting: counted for each submit, at a cost that neither what is answered nor other models add to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from requests_app.selectors import requesters, waiting_slots
from tests.horde import MODEL, Horde, one_value

ANONYMOUS = 0
WAITING = """
    WITH request AS (
        INSERT INTO waiting_prompts (id, user_id, n, jobs, max_length, active, order_key, created, expiry, models)
        SELECT gen_random_uuid(), %s, %s, 1, 80, true, 0, now(), now(), ARRAY[%s || number]::varchar[]
          FROM generate_series(1, %s) AS number
     RETURNING id, user_id, models, n
    )
    INSERT INTO queue_rows (request_id, model, order_key, created, max_length, max_context_length, user_id)
    SELECT id, models[1], 0, now(), 80, 2048, user_id
      FROM request
     WHERE n > 0
"""


def wait(user_id: int, *, count: int, n: int = 1, model: str = "other/model-") -> None:
    """Write requests of one user, each of a model of its own."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING, [user_id, n, model, count])
        cursor.execute("ANALYZE waiting_prompts, queue_rows")


def plan_of(selector: str, parameters: Mapping[str, Any]) -> str:
    """Return how PostgreSQL would run a selector's statement."""
    statement = (Path(waiting_slots.__file__).parent / "sql" / f"{selector}.sql").read_text(encoding="utf-8")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}", parameters)
        return "\n".join(line for (line,) in cursor.fetchall())


def test_what_is_answered_is_not_read(horde: Horde) -> None:
    wait(horde.requester.id, count=3000, n=0)
    # Where nobody else waits, the queue in its order is as short a way to the user's own.
    wait(ANONYMOUS, count=3000)
    wait(horde.requester.id, count=2)

    of_user = {"user_id": horde.requester.id, "models": [MODEL], "any_models": True}
    of_key = {"key_hashes": [], "shared_key_id": None, "models": [MODEL]}

    for plan in (plan_of("waiting_slots", of_user), plan_of("requester", of_key)):
        assert "waiting_prompts_of_user" in plan
        assert "waiting_prompts_user_id" not in plan
    assert waiting_slots.count(user_id=horde.requester.id, models=[MODEL]) == 2
    assert requesters.find(api_key=horde.requester.api_key, models=[MODEL]).waiting_slots == 2


def test_what_waits_for_other_models_of_the_anonymous_user_is_not_read(horde: Horde) -> None:
    wait(ANONYMOUS, count=3000)
    wait(horde.requester.id, count=5)

    of_user = {"user_id": ANONYMOUS, "models": [MODEL], "any_models": False}
    of_key = {"key_hashes": [], "shared_key_id": None, "models": [MODEL]}

    for plan in (plan_of("waiting_slots", of_user), plan_of("requester", of_key)):
        assert "queue_rows_anonymous" in plan
    for models, count in ([MODEL], 0), (["other/model-1", "other/model-7"], 2), ([], 3000):
        assert waiting_slots.count(user_id=ANONYMOUS, models=models) == count
        assert requesters.find(api_key="0000000000", models=models).waiting_slots == count


@pytest.mark.parametrize("change", ["n = 0", "faulted = true", "active = false"])
def test_what_does_not_wait_does_not_count(horde: Horde, change: str) -> None:
    for user_id, api_key in (ANONYMOUS, "0000000000"), (horde.requester.id, horde.requester.api_key):
        wait(user_id, count=2, model=MODEL)
        one_value(
            f"UPDATE waiting_prompts SET {change} WHERE user_id = %s AND models[1] = %s RETURNING 1",
            [user_id, f"{MODEL}1"],
        )

        for models in ([f"{MODEL}1", f"{MODEL}2"], []):
            assert waiting_slots.count(user_id=user_id, models=models) == 1
            assert requesters.find(api_key=api_key, models=models).waiting_slots == 1
