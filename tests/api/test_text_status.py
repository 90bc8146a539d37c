"""A text request's status, its cancellation and its stored input; chat ids are unknown there, and the reverse."""

from uuid import uuid4

import pytest

from tests.horde import MODEL, Answer, Horde, count_rows, make_person, one_value

WAITING = {
    "finished": 0,
    "processing": 0,
    "restarted": 0,
    "waiting": 2,
    "done": False,
    "faulted": False,
    "wait_time": 0,
    "queue_position": 1,
    "kudos": 1,
    "is_possible": False,
    "eligible_workers": 0,
    "eligible_worker_threads": 0,
    "generations": [],
}


def cancel(horde: Horde, request_id: str) -> Answer:
    return horde.call("DELETE", f"generate/text/status/{request_id}")


def stored(horde: Horde, request_id: str, *, api_key: str | None = None) -> Answer:
    return horde.call("GET", f"generate/text/request/{request_id}", api_key=api_key or horde.requester.api_key)


def test_tells_how_far_it_is_in_the_keys_of_text(horde: Horde) -> None:
    request_id = horde.queued_text(params={"n": 2})

    assert horde.text_status(request_id) == (200, WAITING)


def test_counts_the_workers_that_could_take_it(horde: Horde) -> None:
    request_id = horde.queued_text(params={"max_length": 500}, models=[MODEL])
    declared = {"chat_jobs": None, "prompt_jobs": None}
    horde.pop(**declared, threads=3)
    horde.pop(**declared, name="short", max_length=499)
    horde.pop(**declared, name="narrow", max_context_length=2047)
    horde.pop(**declared, name="other", models=["other/model"])
    horde.pop(name="chat alone")
    for state in ("maintenance", "paused"):
        horde.pop(**declared, name=state)
        one_value(f"UPDATE workers SET {state} = true WHERE name = '{state}' RETURNING 1")

    body = horde.text_status(request_id)[1]

    assert (body["eligible_workers"], body["eligible_worker_threads"], body["is_possible"]) == (1, 3, True)


def test_counts_only_the_workers_it_lets_serve(horde: Horde) -> None:
    declared = {"chat_jobs": None, "prompt_jobs": None}
    horde.pop(**declared)
    horde.pop(**declared, name="stranger's", api_key=make_person("stranger").api_key)
    own = str(one_value("SELECT id FROM workers WHERE name = 'worker one'"))

    trusted = horde.queued_text(trusted_workers=True)
    listed = horde.queued_text(workers=[own])
    others = horde.queued_text(workers=[own], worker_blacklist=True, trusted_workers=True)

    assert [horde.text_status(each)[1]["eligible_workers"] for each in (trusted, listed, others)] == [1, 1, 0]


@pytest.mark.spec("PRC-20")
def test_shows_a_stored_generation_without_what_chat_adds(horde: Horde) -> None:
    request_id = horde.queued_text(models=[MODEL])
    horde.pop()
    one_value(
        "INSERT INTO processing_gens (id, request_id, worker_id, model, generation, seed, created, deadline, message,"
        " finish_reason, native_finish_reason, prompt_tokens, completion_tokens, reasoning_tokens, charge_basis)"
        " SELECT %s, %s, id, %s, 'there was', 7, now(), now(), '{}', 'stop', 'eos', 1, 2, 3, 'output_estimate'"
        " FROM workers RETURNING 1",
        [uuid4(), request_id, MODEL],
    )
    one_value("UPDATE waiting_prompts SET n = 0 RETURNING 1")

    body = horde.text_status(request_id)[1]

    assert (body["done"], body["finished"]) == (True, 1)
    assert body["generations"] == [
        {
            "worker_id": str(one_value("SELECT id FROM workers")),
            "worker_name": "worker one",
            "model": MODEL,
            "state": "ok",
            "text": "there was",
            "seed": 7,
            "gen_metadata": [],
        }
    ]


@pytest.mark.spec("RTE-18")
def test_waits_in_one_queue_with_chat(horde: Horde) -> None:
    chat = horde.queued()
    text = horde.queued_text()

    assert horde.text_status(text)[1]["queue_position"] == 2
    horde.cancel(chat)
    assert horde.text_status(text)[1]["queue_position"] == 1


def test_a_cancel_answers_the_status_before_and_ends_the_wait(horde: Horde) -> None:
    request_id = horde.queued_text(params={"n": 2})

    assert cancel(horde, request_id) == (200, WAITING)
    after = horde.text_status(request_id)[1]
    assert (after["waiting"], after["done"], after["queue_position"]) == (0, True, 0)
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert cancel(horde, request_id)[1] == after


@pytest.mark.spec("RTE-07", "RTE-08", "RTE-10")
def test_a_chat_id_is_unknown_on_the_text_routes(horde: Horde) -> None:
    request_id = horde.queued()
    before = horde.status(request_id)

    for status, body in (horde.text_status(request_id), cancel(horde, request_id), stored(horde, request_id)):
        assert (status, body["rc"]) == (404, "RequestNotFound")
        assert request_id in body["message"]
    assert horde.status(request_id) == before


@pytest.mark.spec("RTE-09", "RTE-10")
def test_a_text_id_is_unknown_on_the_chat_routes(horde: Horde) -> None:
    request_id = horde.queued_text()
    before = horde.text_status(request_id)

    for status, body in (horde.status(request_id), horde.cancel(request_id)):
        assert (status, body["rc"]) == (404, "RequestNotFound")
    assert horde.text_status(request_id) == before


@pytest.mark.spec("RTE-11")
def test_no_chat_route_shows_stored_params(horde: Horde) -> None:
    request_id = horde.queued(temperature=0.123)

    assert horde.call("GET", f"generate/chat/request/{request_id}", api_key=horde.requester.api_key)[0] == 404
    for answer in (horde.status(request_id), horde.cancel(request_id)):
        assert "temperature" not in str(answer)
        assert "0.123" not in str(answer)


@pytest.mark.parametrize("request_id", ["x", "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e", "%00", "9" * 5000])
def test_an_id_nobody_has_names_no_request(horde: Horde, request_id: str) -> None:
    for status, body in (horde.text_status(request_id), cancel(horde, request_id), stored(horde, request_id)):
        assert (status, body["rc"]) == (404, "RequestNotFound")


class TestTheStoredInput:
    """It is for the key it was submitted under, and shows what was sent."""

    def test_is_what_was_sent(self, horde: Horde) -> None:
        request_id = horde.queued_text(params={"temperature": 0.5, "n": 2}, models=[MODEL], trusted_workers=True)
        one_value("UPDATE waiting_prompts SET prompt = 'rewritten' RETURNING 1")

        assert stored(horde, request_id) == (
            200,
            {
                "prompt": "Once upon a time",
                "params": {"n": 2, "max_length": 80, "max_context_length": 2048, "temperature": 0.5},
                "models": [MODEL],
                "workers": [],
                "worker_blacklist": False,
                "trusted_workers": True,
                "validated_backends": False,
                "slow_workers": True,
            },
        )

    def test_is_kept_by_no_cache(self, horde: Horde) -> None:
        request_id = horde.queued_text()

        answer = horde.http.get(
            f"/api/v2/generate/text/request/{request_id}", headers={"apikey": horde.requester.api_key}
        )

        assert answer.headers["Cache-Control"] == "private, no-store"

    def test_is_for_no_other_key(self, horde: Horde) -> None:
        request_id = horde.queued_text()
        shared = horde.share_key(horde.requester)

        assert stored(horde, request_id, api_key="nobody")[1]["rc"] == "InvalidAPIKey"
        for other in (horde.owner.api_key, shared, "0000000000"):
            assert stored(horde, request_id, api_key=other) == (
                403,
                {"message": "Only the key a request was submitted under may read it.", "rc": "WrongCredentials"},
            )

    def test_of_a_shared_key_is_for_that_key_alone(self, horde: Horde) -> None:
        shared = horde.share_key(horde.requester)
        request_id = horde.queued_text(api_key=shared)

        assert stored(horde, request_id, api_key=shared)[0] == 200
        assert stored(horde, request_id)[0] == 403
        assert stored(horde, request_id, api_key=horde.share_key(horde.requester))[0] == 403

    def test_needs_a_key(self, horde: Horde) -> None:
        status, body = horde.call("GET", f"generate/text/request/{horde.queued_text()}")

        assert (status, list(body["errors"])) == (400, ["apikey"])
