"""The status tells how far a request has come; a cancel takes out what still waits."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.horde import MODEL, TRACES, Horde, count_rows, make_person, one_value
from tests.signals import listening

WAITING = {
    "finished": 0,
    "processing": 0,
    "restarted": 0,
    "waiting": 1,
    "done": False,
    "faulted": False,
    "wait_time": 0,
    "queue_position": 1,
    "kudos": 1.0,
    "is_possible": True,
    "generations": [],
    "eligible_workers": 1,
    "eligible_worker_threads": 3,
    "context_adjustments": None,
    "impossible_reason": None,
    "fault_reason": None,
    "fault_rc": None,
}


@pytest.mark.spec("RTE-04", "RTE-17", "FLW-09")
def test_shows_a_waiting_request(horde: Horde) -> None:
    horde.pop(threads=3)
    request_id = horde.submit()[1]["id"]

    assert horde.status(request_id) == (200, WAITING)


@pytest.mark.spec("RTE-05", "PRC-15", "PRC-16", "PRC-17", "PRC-18", "PRC-19", "FLW-07", "REQ-04")
def test_shows_a_finished_generation(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.reply(generation_id, native_finish_reason="eos", completion_tokens=5)

    status, body = horde.status(request_id)

    [generation] = body["generations"]
    assert status == 200
    assert 0 <= generation.pop("queue_wait_seconds") < 60
    assert generation == {
        "worker_id": one_value("SELECT id::text FROM workers"),
        "worker_name": "worker one",
        "model": MODEL,
        "state": "ok",
        "text": "Hello yourself",
        "seed": 0,
        "gen_metadata": [],
        "message": {"role": "assistant", "content": "Hello yourself"},
        "finish_reason": "stop",
        "native_finish_reason": "eos",
        "prompt_tokens": None,
        "completion_tokens": 5,
        "reasoning_tokens": None,
        "charge_basis": "output_estimate",
    }
    assert (body["finished"], body["processing"], body["waiting"], body["done"]) == (1, 0, 0, True)
    assert (body["queue_position"], body["kudos"]) == (0, 2.65)


@pytest.mark.spec("SUB-11", "SUB-12", "SUB-13", "SUB-14", "PRC-14", "PRC-17")
@pytest.mark.parametrize("count", ["prompt_tokens", "completion_tokens", "reasoning_tokens"])
@pytest.mark.parametrize("sent", [None, 0, 10_000_000])
def test_shows_what_a_worker_reports_and_null_for_the_rest(horde: Horde, count: str, sent: int | None) -> None:
    request_id, generation_id = horde.in_flight()
    nothing: dict[str, Any] = dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens"))
    reported = nothing | {count: sent}

    horde.reply(generation_id, **reported)

    [generation] = horde.status(request_id)[1]["generations"]
    assert {key: generation[key] for key in nothing} == reported
    assert one_value(f"SELECT {count} FROM processing_gens") == sent
    assert one_value("SELECT num_nulls(prompt_tokens, completion_tokens, reasoning_tokens) FROM processing_gens") == (
        3 if sent is None else 2
    )


@pytest.mark.spec("PRC-19", "PRC-28")
@pytest.mark.parametrize(("moment", "wait"), [("90.5 s", 90.5), ("0 s", 0), ("-3 s", 0)])
def test_counts_the_wait_from_the_creation_to_the_assignment(horde: Horde, moment: str, wait: float) -> None:
    request_id, generation_id = horde.in_flight()
    horde.reply(generation_id)
    one_value(
        "UPDATE processing_gens SET created = request.created + %s::interval"
        " FROM waiting_prompts AS request RETURNING 1",
        [moment],
    )

    assert horde.status(request_id)[1]["generations"][0]["queue_wait_seconds"] == wait


@pytest.mark.spec("PRC-28")
def test_counts_the_wait_of_a_restarted_request_from_its_creation_too(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    one_value("UPDATE waiting_prompts SET created = created - interval '600 s' RETURNING 1")
    horde.fault(generation_id)

    horde.reply(horde.pop()[1]["id"])

    body = horde.status(request_id)[1]
    assert body["restarted"] == 1
    assert 600 <= body["generations"][0]["queue_wait_seconds"] < 660


@pytest.mark.spec("FLW-09")
def test_shows_a_generation_in_flight(horde: Horde) -> None:
    request_id, _ = horde.in_flight()
    one_value("UPDATE workers SET last_check_in = now() - interval '1 h' RETURNING 1")

    body = horde.status(request_id)[1]

    assert (body["processing"], body["waiting"], body["done"], body["queue_position"]) == (1, 0, False, 0)
    assert (body["is_possible"], body["eligible_workers"]) == (True, 0)


def test_counts_the_position_in_queue_order(horde: Horde) -> None:
    first = horde.queued()
    second = horde.submit()[1]["id"]
    third = horde.submit(api_key=make_person("rich", kudos=100_000).api_key)[1]["id"]

    positions = {request: horde.status(request)[1]["queue_position"] for request in (first, second, third)}

    assert positions == {third: 1, first: 2, second: 3}


def test_counts_the_position_among_equals_by_age_then_by_id(horde: Horde) -> None:
    horde.pop()
    requests = sorted(horde.submit()[1]["id"] for _ in range(6))
    one_value("UPDATE waiting_prompts SET order_key = 0, created = '2026-01-01Z' RETURNING 1")
    one_value("UPDATE waiting_prompts SET created = '2026-01-02Z' WHERE id = %s RETURNING 1", [requests[0]])

    positions = [horde.status(request)[1]["queue_position"] for request in requests]

    assert positions == [6, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("chat_features = '{}'", id="a need is not declared"),
        pytest.param("chat_max_length = 63", id="the length is too small"),
        pytest.param("maintenance = true", id="in maintenance"),
        pytest.param("paused = true", id="paused"),
        pytest.param("last_check_in = now() - interval '301 s'", id="offline"),
    ],
)
def test_says_when_no_worker_could_serve(horde: Horde, change: str) -> None:
    request_id = horde.queued()
    one_value(f"UPDATE workers SET {change} RETURNING 1")

    body = horde.status(request_id)[1]

    assert (body["is_possible"], body["eligible_workers"], body["eligible_worker_threads"]) == (False, 0, 0)


@pytest.mark.spec("RTE-25", "RTE-26")
@pytest.mark.parametrize("request_id", ["2ae21c3c-61f0-4c76-a554-a91cd3945e5b", "no-uuid", "x" * 5000, "0"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_knows_no_request_by_another_id(horde: Horde, method: str, request_id: str) -> None:
    status, body = horde.call(method, f"generate/chat/status/{request_id}")

    assert (status, body["rc"]) == (404, "RequestNotFound")
    assert request_id[:64] in body["message"]


@pytest.mark.spec("RTE-09", "RTE-10")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_hides_a_text_request(horde: Horde, method: str) -> None:
    request_id = horde.queued()
    one_value("UPDATE waiting_prompts SET is_chat = false RETURNING 1")

    assert horde.call(method, f"generate/chat/status/{request_id}")[0] == 404
    assert one_value("SELECT n FROM waiting_prompts WHERE cancelled_at IS NULL") == 1


@pytest.mark.spec("RTE-06", "RTE-28", "FLW-08")
def test_cancels_a_waiting_request(horde: Horde) -> None:
    horde.pop(threads=3)
    request_id = horde.submit()[1]["id"]

    assert horde.cancel(request_id) == (200, WAITING)

    body = horde.status(request_id)[1]
    assert (body["waiting"], body["done"], body["faulted"], body["generations"]) == (0, True, False, [])
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert horde.pop()[1]["id"] is None


@pytest.mark.spec("FLW-11")
def test_lets_a_generation_in_flight_finish_after_a_cancel(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.cancel(request_id)
    assert horde.status(request_id)[1]["done"] is False

    assert horde.reply(generation_id)[0] == 200

    body = horde.status(request_id)[1]
    assert (body["done"], body["finished"]) == (True, 1)


@pytest.mark.spec("FLW-12")
def test_does_not_restart_a_fault_after_a_cancel(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.cancel(request_id)

    horde.fault(generation_id)

    body = horde.status(request_id)[1]
    assert (body["waiting"], body["restarted"], body["done"]) == (0, 1, True)
    assert count_rows("queue_rows") == {"queue_rows": 0}


@pytest.mark.spec("FLW-10")
def test_keeps_stored_results_when_the_rest_is_cancelled(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.reply(generation_id)
    one_value("UPDATE waiting_prompts SET jobs = 2, n = 1 RETURNING 1")
    [before] = horde.status(request_id)[1]["generations"]

    assert horde.cancel(request_id)[0] == 200

    body = horde.status(request_id)[1]
    assert (body["finished"], body["waiting"], body["done"], body["generations"]) == (1, 0, True, [before])


@pytest.mark.spec("FLW-30")
@pytest.mark.parametrize("in_flight", [False, True])
def test_does_nothing_at_a_second_cancel(committed_horde: Horde, settings: Settings, in_flight: bool) -> None:
    horde = committed_horde
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 16, "free_output_floor": 16})
    request_id = horde.queued()
    if in_flight:
        horde.pop()
    horde.cancel(request_id)
    rows = "SELECT (to_jsonb(request), to_jsonb(held))::text FROM waiting_prompts AS request CROSS JOIN holds AS held"
    before, shown = (one_value(rows), count_rows(*TRACES)), horde.status(request_id)

    with listening(request_id) as heard:
        assert horde.cancel(request_id) == shown

    assert shown[0] == 200
    assert heard == []
    assert (one_value(rows), count_rows(*TRACES)) == before


@pytest.mark.spec("FLW-30")
def test_keeps_the_first_cancel_and_a_complete_request(horde: Horde) -> None:
    cancelled = horde.queued()
    horde.cancel(cancelled)
    moment = one_value("SELECT cancelled_at FROM waiting_prompts WHERE id = %s", [cancelled])
    complete, generation_id = horde.in_flight()
    horde.reply(generation_id)

    assert horde.cancel(cancelled)[0] == 200
    assert horde.cancel(complete)[1]["finished"] == 1

    assert one_value("SELECT cancelled_at FROM waiting_prompts WHERE id = %s", [cancelled]) == moment
    assert one_value("SELECT cancelled_at FROM waiting_prompts WHERE id = %s", [complete]) is None
    assert horde.status(complete)[1]["finished"] == 1


@pytest.mark.spec("RTE-32")
def test_needs_no_key(horde: Horde) -> None:
    assert horde.call("GET", f"generate/chat/status/{horde.queued()}")[0] == 200
