"""A pop declares what a worker serves, and takes the next job that fits."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from requests_app.models import Generation, QueueRow, Request
from requests_app.selectors.candidates import CANDIDATES_A_PAGE
from tests.horde import MODEL, TRACES, Horde, count_rows, make_person, one_value
from workers_app.rules.capabilities import mask_of

IDLE: dict[str, Any] = {
    "id": None,
    "ids": [],
    "payload": {
        "max_length": 80,
        "max_context_length": 2048,
        "min_p": 0.0,
        "smoothing_factor": 0.0,
        "dynatemp_range": 0.0,
        "dynatemp_exponent": 1.0,
    },
    "model": None,
    "ttl": None,
    "skipped": {},
    "messages": [],
    "softprompt": None,
    "extra_source_images": None,
}
NO_DECLARATION: dict[str, Any] = dict.fromkeys(["chat_jobs", "prompt_jobs", "chat_features", "chat_limits", "model_id"])


def test_answers_the_whole_shape_when_nothing_waits(horde: Horde) -> None:
    assert horde.pop() == (200, IDLE)


@pytest.mark.spec(
    "POP-02", "POP-03", "POP-09", "POP-10", "POP-11", "POP-12", "POP-13", "POP-14", "POP-15", "POP-16", "POP-19",
    "POP-20", "POP-22", "LSE-01", "REQ-29", "REQ-33",
)  # fmt: skip
def test_hands_out_a_chat_job(horde: Horde) -> None:
    horde.queued(
        messages=[{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi", "name": "Ann"}],
        temperature=0.5,
        stop=["END", "STOP"],
    )

    status, body = horde.pop()

    assert status == 200
    generation_id = body["id"]
    assert generation_id is not None
    assert body == IDLE | {
        "id": generation_id,
        "ids": [generation_id],
        "model": MODEL,
        "ttl": 150,
        "chat": True,
        "payload": {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi", "name": "Ann"}],
            "temperature": 0.5,
            "top_p": 1.0,
            "frequency_penalty": 0,
            "presence_penalty": 0,
            "rep_pen": 1.0,
            "top_k": 0,
            "min_p": 0,
            "stop_sequence": ["END", "STOP"],
            "max_length": 64,
            "max_context_length": 2048,
            "n": 1,
        },
    }


@pytest.mark.spec("POP-31", "POP-32", "POP-33", "LSE-03")
def test_records_the_assignment(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    horde.pop(chat_limits={"max_context_length": 4096, "max_length": 256})

    columns = "model, assigned_model, assigned_max_context_length, assigned_max_length, job_ttl"
    assert one_value(f"SELECT ARRAY[{columns.replace(', ', '::text, ')}::text] FROM processing_gens") == [
        MODEL,
        MODEL,
        "8192",
        "1024",
        "150",
    ]
    assert (
        one_value("SELECT id::text FROM processing_gens WHERE deadline = created + interval '150 s'") == generation_id
    )


def test_empties_the_queue_with_the_last_slot(horde: Horde) -> None:
    horde.in_flight()

    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert horde.pop()[1]["id"] is None


@pytest.mark.spec(
    "DCL-01", "DCL-07", "DCL-08", "DCL-11", "DCL-12", "DCL-15", "DCL-16", "DCL-17", "DCL-20", "DCL-23", "DCL-38"
)
def test_stores_the_declaration(horde: Horde) -> None:
    horde.pop(
        chat_features=["tools", "no such feature", "seed", "tools"],
        chat_limits={"max_context_length": 4096, "max_length": 300, "tools_max_temperature": 1},
        image_transports=["url", "pigeon"],
    )

    assert one_value(
        "SELECT row_to_json(w)::text FROM (SELECT accepts_chat_jobs, accepts_prompt_jobs, chat_features,"
        " chat_max_context_length, chat_max_length, chat_tools_max_temperature, chat_model_id, image_transports"
        " FROM workers) w"
    ) == (
        '{"accepts_chat_jobs":true,"accepts_prompt_jobs":false,"chat_features":["seed","tools"],'
        '"chat_max_context_length":4096,"chat_max_length":300,"chat_tools_max_temperature":1,'
        f'"chat_model_id":"{MODEL}","image_transports":["url"]}}'
    )


@pytest.mark.spec("DCL-02", "DCL-03", "DCL-04", "DCL-05", "DCL-06", "DCL-13", "DCL-37")
def test_withdraws_the_declaration_inside_the_window(horde: Horde) -> None:
    horde.queued()

    status, body = horde.pop(**NO_DECLARATION, max_length=99)

    assert (status, body) == (200, IDLE)
    assert one_value(
        "SELECT row_to_json(w)::text FROM (SELECT accepts_chat_jobs, accepts_prompt_jobs, chat_features,"
        " chat_max_context_length, chat_max_length, chat_tools_max_temperature, chat_model_id, image_transports,"
        " max_length FROM workers) w"
    ) == (
        '{"accepts_chat_jobs":false,"accepts_prompt_jobs":true,"chat_features":null,"chat_max_context_length":null,'
        '"chat_max_length":null,"chat_tools_max_temperature":null,"chat_model_id":null,"image_transports":null,'
        '"max_length":512}'
    )


def test_writes_the_rest_outside_of_the_window(horde: Horde) -> None:
    horde.pop()
    one_value("UPDATE workers SET last_check_in = now() - interval '31 s' RETURNING 1")

    horde.pop(threads=7, max_length=99)

    assert one_value("SELECT threads FROM workers WHERE max_length = 99") == 7
    assert one_value("SELECT now() - last_check_in < interval '5 s' FROM workers") is True


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"chat_features": []}, id="a need the worker does not declare"),
        pytest.param(
            {"chat_limits": {"max_context_length": 2047, "max_length": 1024}}, id="a context below the request's"
        ),
        pytest.param(
            {"chat_limits": {"max_context_length": 8192, "max_length": 63}}, id="a length below the request's"
        ),
        pytest.param({"models": ["other/model"], "model_id": "other/model"}, id="another model"),
        pytest.param({"models": [MODEL, "other/model"], "model_id": "other/model"}, id="the model among models alone"),
        pytest.param(NO_DECLARATION, id="no declaration"),
    ],
)
def test_withholds_a_request_the_worker_does_not_fit(horde: Horde, changes: dict[str, Any]) -> None:
    horde.queued()

    assert horde.pop(**changes)[1]["id"] is None
    assert horde.pop()[1]["id"] is not None


def test_serves_its_own_owner_alone_in_maintenance(horde: Horde) -> None:
    horde.queued()
    horde.submit(api_key=horde.owner.api_key)
    one_value("UPDATE workers SET maintenance = true RETURNING 1")

    assert horde.pop()[1]["id"] is not None
    assert horde.pop() == (
        403,
        {"message": "The owner of this worker has put it into maintenance.", "rc": "WorkerMaintenance"},
    )
    assert one_value("SELECT user_id FROM waiting_prompts WHERE n = 1") == horde.requester.id


def test_hands_out_in_queue_order(horde: Horde) -> None:
    horde.pop()
    rich = make_person("rich", kudos=100_000)
    first, second = (horde.submit()[1]["id"] for _ in range(2))
    third = horde.submit(api_key=rich.api_key)[1]["id"]

    handed = [horde.pop()[1]["id"] for _ in range(3)]

    requests = [one_value("SELECT request_id::text FROM processing_gens WHERE id = %s", [job]) for job in handed]
    assert requests == [third, first, second]


def test_hands_out_equals_by_age_then_by_id(horde: Horde) -> None:
    features = ["prompt_overflow_refused", "seed"]
    horde.pop(chat_features=features)
    requests = sorted(UUID(horde.submit()[1]["id"]) for _ in range(10))
    equals = {"order_key": 0, "created": datetime(2026, 1, 1, tzinfo=UTC)}
    QueueRow.objects.update(**equals)
    Request.objects.update(**equals)
    # Every other request needs more than its neighbours: the queue is read by needs, and has to come out as one.
    QueueRow.objects.filter(request_id__in=requests[::2]).update(feature_mask=mask_of(features))
    youngest, *expected = requests
    QueueRow.objects.filter(request_id=youngest).update(created=datetime(2026, 1, 2, tzinfo=UTC))

    handed = [horde.pop(chat_features=features)[1]["id"] for _ in requests]

    assert [Generation.objects.get(id=job).request_id for job in handed] == [*expected, youngest]


def test_hands_out_the_oldest_of_more_equals_than_a_pop_looks_at(horde: Horde) -> None:
    horde.pop()
    requests = sorted(UUID(horde.submit()[1]["id"]) for _ in range(CANDIDATES_A_PAGE + 1))
    QueueRow.objects.update(order_key=0, created=datetime(2026, 1, 2, tzinfo=UTC))
    QueueRow.objects.filter(request_id=requests[-1]).update(created=datetime(2026, 1, 1, tzinfo=UTC))

    assert Generation.objects.get(id=horde.pop()[1]["id"]).request_id == requests[-1]


@pytest.mark.parametrize(
    ("left", "until"),
    [
        pytest.param("1 minute", "created + interval '20 minutes'", id="moved on to 20 minutes from the pop"),
        pytest.param("1 hour", "NULL", id="never moved back"),
    ],
)
def test_keeps_a_handed_out_request_for_another_20_minutes(horde: Horde, left: str, until: str) -> None:
    horde.queued()
    expiry = one_value("UPDATE waiting_prompts SET expiry = now() + %s::interval RETURNING expiry", [left])

    horde.pop()

    expected = one_value(f"SELECT {until} FROM processing_gens")
    assert one_value("SELECT expiry FROM waiting_prompts") == (expected or expiry)


def test_passes_over_an_expired_request(horde: Horde) -> None:
    request_id = horde.queued()
    one_value("UPDATE waiting_prompts SET expiry = now() - interval '1 s' RETURNING 1")

    assert horde.pop()[1]["id"] is None
    assert one_value("SELECT n FROM waiting_prompts WHERE id = %s", [request_id]) == 1


def test_refuses_strangers(horde: Horde) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    assert horde.pop(api_key="nobody")[0] == 401
    assert horde.pop(api_key="0000000000")[1]["rc"] == "AnonForbiddenWorker"
    assert horde.pop(api_key=horde.requester.api_key)[1]["rc"] == "WrongCredentials"
    assert count_rows(*TRACES) == before


REVOKED = "UPDATE api_keys SET revoked_at = now() WHERE user_id = %s RETURNING 1"
DELETED = "UPDATE users SET is_deleted = true WHERE id = %s RETURNING 1"


@pytest.mark.parametrize(
    ("end", "answer"), [(REVOKED, (401, "InvalidAPIKey")), (DELETED, (403, "DeletedUser"))], ids=["revoked", "deleted"]
)
def test_refuses_a_key_that_is_no_longer_good(horde: Horde, end: str, answer: tuple[int, str]) -> None:
    horde.queued()
    one_value(end, [horde.owner.id])
    before = count_rows(*TRACES)

    for name in ("worker one", "new worker"):
        status, body = horde.pop(name=name)
        assert (status, body["rc"]) == answer

    assert count_rows(*TRACES) == before


def test_takes_no_request_for_a_revoked_key(horde: Horde) -> None:
    horde.pop()
    one_value(REVOKED, [horde.requester.id])
    before = count_rows(*TRACES)

    status, body = horde.submit()

    assert (status, body["rc"]) == (401, "InvalidAPIKey")
    assert count_rows(*TRACES) == before


@pytest.mark.spec("DCL-27", "DCL-28", "DCL-36")
@pytest.mark.parametrize("missing", ["chat_limits", "model_id"])
def test_leaves_nothing_of_a_refused_declaration(horde: Horde, missing: str) -> None:
    horde.pop(name="known worker")
    stored = one_value("SELECT row_to_json(w)::text FROM workers w")

    for name in ("known worker", "new worker"):
        status, body = horde.pop(name=name, **{missing: None})
        assert (status, body["rc"]) == (400, "ChatDeclarationInvalid")
        assert f"'{missing}'" in body["message"]

    assert one_value("SELECT row_to_json(w)::text FROM workers w") == stored
    assert count_rows("workers") == {"workers": 1}
