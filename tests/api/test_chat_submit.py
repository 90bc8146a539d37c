"""A chat submit queues a request, or refuses it and leaves nothing."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from tests.horde import MODEL, TRACES, Horde, chat_body, count_rows, one_value


@pytest.mark.spec("RTE-01", "RTE-02", "RTE-15", "RTE-30")
def test_answers_202_with_id_and_estimate_alone(horde: Horde) -> None:
    horde.pop()

    status, body = horde.submit()

    assert status == 202
    assert set(body) == {"id", "kudos"}
    # (64 tokens x 0.027 x C(2048) = 3.4) is 5.88; one burn and one tax more is 7.88, told as a whole number.
    assert body["kudos"] == 8


@pytest.mark.spec("RTE-12", "REQ-28", "FLT-01", "FLT-02", "FLT-03", "FLT-11", "FLT-24")
def test_stores_messages_as_sent_and_the_flattened_prompt(horde: Horde) -> None:
    messages = [
        {"role": "developer", "content": "Answer in French."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two é"}],
            "name": "Ann",
        },
        {"role": "assistant", "content": ""},
    ]

    request_id = horde.queued(messages=messages)

    columns = "is_chat, messages::text, prompt, submitted_prompt"
    stored = one_value(
        f"SELECT row_to_json(r) FROM (SELECT {columns} FROM waiting_prompts WHERE id = %s) r", [request_id]
    )
    assert stored["is_chat"] is True
    assert orjson.loads(stored["messages"]) == [
        {"role": "system", "content": "Answer in French."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two é"}],
            "name": "Ann",
        },
        {"role": "assistant", "content": ""},
    ]
    assert stored["prompt"] == "system: Answer in French.\nuser: one\ntwo é\nassistant: "
    assert stored["submitted_prompt"] == stored["prompt"]


def test_takes_one_kudos_of_tax(horde: Horde) -> None:
    request_id = horde.queued()

    assert horde.kudos(horde.requester) == Decimal(9999)
    assert one_value("SELECT idempotency_key FROM transfers WHERE kind = 'tax'") == f"tax:{request_id}"


def test_places_one_queue_row_for_each_model(horde: Horde) -> None:
    horde.pop()
    horde.pop(name="worker two", models=["other/model"], model_id="other/model")

    status, body = horde.submit(model=None, models=[MODEL, "other/model"])

    assert status == 202
    assert one_value(
        "SELECT array_agg(model::text ORDER BY model) FROM queue_rows WHERE request_id = %s", [body["id"]]
    ) == [
        MODEL,
        "other/model",
    ]


def test_derives_the_need_of_a_strict_request(horde: Horde) -> None:
    request_id = horde.queued()

    assert one_value("SELECT chat_required_features FROM waiting_prompts WHERE id = %s", [request_id]) == [
        "prompt_overflow_refused"
    ]
    assert one_value("SELECT feature_mask FROM queue_rows WHERE request_id = %s", [request_id]) == 1 << 12


@pytest.mark.spec("REQ-09")
def test_defaults_to_512_tokens_of_output(horde: Horde) -> None:
    request_id = horde.queued(max_tokens=None)

    assert one_value("SELECT max_length FROM waiting_prompts WHERE id = %s", [request_id]) == 512


def test_warns_when_the_serving_workers_cannot_take_the_request(horde: Horde) -> None:
    horde.pop(chat_features=[])

    status, body = horde.submit()

    assert status == 202
    assert "No online worker can serve this request now." in body["message"]


@pytest.mark.spec("MDL-02", "MDL-07", "MDL-08", "MDL-18", "MDL-23", "MDL-26")
@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"model": "no/model"}, "'model' names an unknown model: 'no/model'."),
        ({"model": MODEL.upper()}, f"'model' names an unknown model: '{MODEL.upper()}'."),
        ({"model": None, "models": [MODEL, "no/model", "not/this"]}, "'models[1]' names an unknown model: 'no/model'."),
    ],
)
def test_refuses_an_unknown_model(horde: Horde, models: dict[str, Any], message: str) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    status, body = horde.submit(**models)

    assert (status, body) == (404, {"message": message, "rc": "UnknownChatModel"})
    assert count_rows(*TRACES) == before


@pytest.mark.spec("MDL-10", "MDL-11", "MDL-13", "MDL-15", "MDL-27", "ELG-20")
def test_refuses_a_model_whose_only_worker_is_in_maintenance(horde: Horde) -> None:
    horde.pop()
    one_value("UPDATE workers SET maintenance = true RETURNING 1")
    before = count_rows(*TRACES)

    status, body = horde.submit()

    message = f"No worker is currently serving the model '{MODEL}'."
    assert (status, body) == (403, {"message": message, "rc": "NoEligibleWorker"})
    assert count_rows(*TRACES) == before


@pytest.mark.spec("MDL-14")
def test_names_every_model_when_none_of_several_is_served(horde: Horde) -> None:
    horde.pop()
    horde.pop(name="worker two", models=["other/model"], model_id="other/model")
    one_value("UPDATE workers SET maintenance = true RETURNING 1")

    status, body = horde.submit(model=None, models=[MODEL, "other/model"])

    assert status == 403
    assert body["message"] == f"No worker is currently serving any of the models '{MODEL}', 'other/model'."


@pytest.mark.spec("MDL-03")
@pytest.mark.parametrize(("seconds", "status"), [(299, 202), (301, 404)])
def test_counts_a_worker_for_300_seconds(horde: Horde, seconds: int, status: int) -> None:
    horde.pop()
    one_value("UPDATE workers SET last_check_in = now() - make_interval(secs => %s) RETURNING 1", [seconds])

    assert horde.submit()[0] == status


@pytest.mark.spec("MDL-04", "MDL-05", "DCL-05")
def test_does_not_count_a_worker_that_withdrew_its_declaration(horde: Horde) -> None:
    horde.pop()
    horde.pop(chat_jobs=None, prompt_jobs=None, chat_features=None, chat_limits=None, model_id=None)

    assert horde.submit()[1]["rc"] == "UnknownChatModel"


@pytest.mark.spec("ORD-13", "ORD-16")
def test_judges_the_body_before_the_key_and_the_key_before_the_model(horde: Horde) -> None:
    assert horde.submit(max_tokens=1, api_key="nobody")[0] == 400
    assert horde.submit(model="no/model", api_key="nobody") == (
        401,
        {
            "message": "No user has this API key. Ask the operator of this site for one, or use 0000000000.",
            "rc": "InvalidAPIKey",
        },
    )


def test_requires_the_key_header(horde: Horde) -> None:
    status, body = horde.call("POST", "generate/chat/async", chat_body())

    assert status == 400
    assert body["rc"] == "BadRequest"
    assert list(body["errors"]) == ["apikey"]


def test_takes_the_anonymous_key(horde: Horde) -> None:
    horde.pop()

    assert horde.submit(api_key="0000000000")[0] == 202
    assert one_value("SELECT user_id FROM waiting_prompts") == 0


NOT_YET: list[tuple[dict[str, Any], str]] = [({"stream": True}, "stream")]


@pytest.mark.parametrize(("changes", "path"), NOT_YET, ids=[", ".join(changes) for changes, _ in NOT_YET])
def test_refuses_what_it_does_not_serve_yet(horde: Horde, changes: dict[str, Any], path: str) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    assert horde.submit(**changes) == (
        400,
        {"message": f"{path} is not supported yet.", "rc": "UnsupportedChatParameter"},
    )
    assert count_rows(*TRACES) == before


@pytest.mark.parametrize(
    "changes",
    [
        {
            "stream": False,
            "tools": [],
            "response_format": {"type": "text"},
            "frequency_penalty": 0,
            "presence_penalty": 0.0,
        },
        {"n": 1, "stream_options": {"x": [1]}, "user": 5, "metadata": {"a": {}}},
        {"horde": {"conformance": "strict", "slow_workers": True, "dry_run": False, "context_fit": "truncate_oldest"}},
        {"horde": {"include_reasoning": False, "availability_mode": "fail_fast", "openai_guards": True}},
    ],
)
def test_passes_keys_at_their_default_or_without_effect(horde: Horde, changes: dict[str, Any]) -> None:
    horde.pop()

    assert horde.submit(**changes)[0] == 202


def test_passes_null_as_absent(horde: Horde) -> None:
    horde.pop()
    keys = ["temperature", "top_p", "stop", "seed", "stream", "tools", "tool_choice", "response_format", "horde", "n"]

    assert horde.submit(body=chat_body() | dict.fromkeys(keys))[0] == 202
