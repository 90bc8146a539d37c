"""A submit stores a reply once and pays it once, or gives the job back."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.horde import ABLE, Answer, Horde, count_rows, make_person, one_value
from tests.tries import NO_RECORD, counts_of, record_of

LONG = "x" * 400


@pytest.mark.spec("SUB-02", "SUB-51", "PRC-01", "PRC-02", "PRC-10", "PRC-13")
def test_stores_charges_and_pays(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight(max_tokens=1024)

    status, body = horde.reply(generation_id, message={"role": "assistant", "content": LONG})

    # 100 tokens behind a prompt of the least 20: 100 x 0.027 x C(20), and C(20) is 1.2 + 2.2 ** log2(20 / 1024).
    earned = Decimal("3.27")
    assert (status, body) == (200, {"reward": float(earned)})
    assert horde.kudos(horde.owner) == earned
    assert horde.kudos(horde.requester) == Decimal(10_000) - 1 - earned - 1
    assert one_value("SELECT consumed_kudos FROM waiting_prompts WHERE id = %s", [request_id]) == 1 + earned + 1
    assert one_value("SELECT kudos FROM processing_gens") == earned
    assert one_value("SELECT array_agg(idempotency_key ORDER BY id) FROM transfers WHERE kind <> 'start'") == [
        f"tax:{request_id}",
        f"burn:{generation_id}",
        f"reply:{generation_id}",
    ]


@pytest.mark.spec("SUB-31", "SUB-36", "SUB-14", "PRC-03")
def test_stores_the_whole_reply(horde: Horde) -> None:
    _, generation_id = horde.in_flight()

    horde.reply(
        generation_id,
        message={"role": "assistant", "content": "", "reasoning_content": "Hm.", "extra": 1},
        finish_reason="length",
        native_finish_reason="max_len",
        prompt_tokens=0,
        completion_tokens=7,
    )

    assert one_value(
        "SELECT row_to_json(g)::text FROM (SELECT generation, message, finish_reason, native_finish_reason,"
        " prompt_tokens, completion_tokens, reasoning_tokens, charge_basis FROM processing_gens) g"
    ) == (
        '{"generation":"","message":{"role": "assistant", "content": "", "reasoning_content": "Hm."},'
        '"finish_reason":"length","native_finish_reason":"max_len","prompt_tokens":0,"completion_tokens":7,'
        '"reasoning_tokens":null,"charge_basis":"output_estimate"}'
    )


@pytest.mark.spec("SUB-40")
def test_replaces_nul_characters(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()

    status, _ = horde.reply(
        generation_id, message={"role": "assistant", "content": "a\x00b", "reasoning_content": "\x00"}
    )

    assert status == 200
    assert horde.status(request_id)[1]["generations"][0]["message"] == {
        "role": "assistant",
        "content": "a\ufffdb",
        "reasoning_content": "\ufffd",
    }


@pytest.mark.spec("PRC-12", "PRC-26")
def test_charges_no_more_tokens_than_were_asked_for(horde: Horde) -> None:
    _, generation_id = horde.in_flight(max_tokens=16)

    horde.reply(generation_id, message={"role": "assistant", "content": LONG})

    # 16 tokens x 0.027 x C(16).
    assert horde.kudos(horde.owner) == Decimal("0.52")


def test_pays_a_censored_reply_and_charges_its_burn_alone(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()

    status, body = horde.reply(generation_id, state="censored")

    assert status == 200
    assert body["reward"] > 0
    assert horde.kudos(horde.requester) == Decimal(9998)
    assert float(horde.kudos(horde.owner)) == body["reward"]
    assert horde.status(request_id)[1]["generations"][0]["state"] == "censored"


def test_lets_an_owner_serve_themselves(horde: Horde) -> None:
    horde.pop()
    horde.submit(api_key=horde.owner.api_key)
    generation_id = horde.pop()[1]["id"]

    assert horde.reply(generation_id)[0] == 200
    # The tax is the owner's first debit, which lifts the balance to the least a user has; the burn does so again.
    assert horde.kudos(horde.owner) == Decimal(25)


@pytest.mark.spec("SUB-42")
def test_pays_one_of_two_equal_replies(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    horde.reply(generation_id)
    owner, requester = horde.kudos(horde.owner), horde.kudos(horde.requester)

    status, body = horde.reply(generation_id)

    assert (status, body["rc"]) == (400, "DuplicateGen")
    assert (horde.kudos(horde.owner), horde.kudos(horde.requester)) == (owner, requester)


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"message": None}, "message"),
    ({"finish_reason": None}, "finish_reason"),
    ({"model_id": None}, "model_id"),
    ({"finish_reason": "tired"}, "finish_reason"),
    ({"finish_reason": "tool_calls"}, "finish_reason"),
    ({"message": {"role": "user", "content": "x"}}, "message.role"),
    ({"message": {"role": "assistant", "content": None}}, "message.content"),
    ({"message": {"role": "assistant"}}, "message.content"),
    ({"message": {"role": "assistant", "content": "x", "tool_calls": []}}, "message.tool_calls"),
    (
        {"message": {"role": "assistant", "content": "x", "reasoning_content": "é" * 600_000}},
        "message.reasoning_content",
    ),
    ({"native_finish_reason": "x" * 33}, "native_finish_reason"),
    ({"prompt_tokens": -1}, "prompt_tokens"),
    ({"completion_tokens": 10_000_001}, "completion_tokens"),
    ({"reasoning_tokens": True}, "reasoning_tokens"),
    ({"generation": "x"}, "generation"),
]


@pytest.mark.spec("SUB-02", "SUB-04", "SUB-20", "SUB-21", "SUB-22", "SUB-45", "SUB-46")
@pytest.mark.parametrize(("changes", "path"), INVALID)
def test_refuses_an_invalid_reply_and_leaves_the_job_pending(horde: Horde, changes: dict[str, Any], path: str) -> None:
    _, generation_id = horde.in_flight()
    before = count_rows("transfers")

    status, body = horde.reply(generation_id, **changes)

    assert (status, body["rc"]) == (400, "ChatSubmitInvalid")
    assert f"'{path}'" in body["message"]
    assert count_rows("transfers") == before
    assert horde.reply(generation_id)[0] == 200


def test_refuses_a_revoked_key(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    one_value("UPDATE api_keys SET revoked_at = now() WHERE user_id = %s RETURNING 1", [horde.owner.id])
    before = count_rows("transfers")

    for status, body in (horde.reply(generation_id), horde.fault(generation_id)):
        assert (status, body["rc"]) == (401, "InvalidAPIKey")

    assert count_rows("transfers") == before
    assert one_value("SELECT count(*) FROM processing_gens WHERE generation IS NULL AND NOT faulted") == 1


def test_counts_each_stored_reply_once_for_its_worker(horde: Horde) -> None:
    for stored in range(1, 4):
        _, generation_id = horde.in_flight()
        horde.reply(generation_id)
        horde.reply(generation_id)
        assert one_value("SELECT requests_fulfilled FROM workers") == stored
    _, generation_id = horde.in_flight()
    horde.fault(generation_id)

    assert one_value("SELECT requests_fulfilled FROM workers") == 3


@pytest.mark.parametrize(
    ("left", "until"),
    [
        pytest.param("1 minute", "finished_at + interval '20 minutes'", id="moved on to 20 minutes from the reply"),
        pytest.param("1 hour", "created + interval '1 hour'", id="never moved back"),
    ],
)
def test_keeps_an_answered_request_for_another_20_minutes(horde: Horde, left: str, until: str) -> None:
    _, generation_id = horde.in_flight()
    one_value(
        "UPDATE waiting_prompts SET expiry = processing_gens.created + %s::interval FROM processing_gens RETURNING 1",
        [left],
    )

    horde.reply(generation_id)

    assert one_value("SELECT expiry FROM waiting_prompts") == one_value(f"SELECT {until} FROM processing_gens")


@pytest.mark.spec("SUB-24", "SUB-15")
@pytest.mark.parametrize("model_id", ["other/model", ""])
def test_refuses_another_model(horde: Horde, model_id: str) -> None:
    _, generation_id = horde.in_flight()

    for answer in (horde.reply(generation_id, model_id=model_id), horde.fault(generation_id, model_id=model_id)):
        assert answer == (
            400,
            {
                "message": f"'model_id' is '{model_id}' and the job was assigned to 'demo/echo'.",
                "rc": "ChatModelMismatch",
            },
        )


@pytest.mark.spec("SUB-41")
def test_checks_in_the_documented_order(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    stranger = make_person("stranger")

    assert horde.reply(str(uuid4()), api_key="nobody", state="tired")[1]["rc"] == "BadRequest"
    assert horde.reply(str(uuid4()), api_key="nobody")[1]["rc"] == "InvalidJobID"
    assert horde.reply("no uuid", api_key="nobody")[0] == 404
    assert horde.reply(generation_id, api_key="nobody", message=None)[1]["rc"] == "InvalidAPIKey"
    assert horde.reply(generation_id, api_key=stranger.api_key, message=None)[1]["rc"] == "WrongCredentials"
    assert horde.reply(generation_id, message=None, model_id="other")[1]["rc"] == "ChatSubmitInvalid"
    call = {"id": "call_1", "type": "function", "function": {"name": "nobody's", "arguments": "{}"}}
    unverified: dict[str, Any] = {"message": {"role": "assistant", "content": None, "tool_calls": [call]}}
    assert horde.reply(generation_id, model_id="other", **unverified)[1]["rc"] == "ChatModelMismatch"
    assert horde.reply(generation_id, **unverified)[1]["rc"] == "ChatSubmitInvalid"
    _, given_back = horde.in_flight()
    assert horde.reply(generation_id)[0] == 200
    assert horde.fault(given_back)[0] == 200
    for ended, rc in ((generation_id, "DuplicateGen"), (given_back, "AbortedGen")):
        assert horde.reply(ended, api_key="nobody")[1]["rc"] == "InvalidAPIKey"
        assert horde.reply(ended, api_key=stranger.api_key)[1]["rc"] == "WrongCredentials"
        assert horde.reply(ended, message=None)[1]["rc"] == rc


@pytest.mark.spec("SUB-19")
def test_requires_generation_of_a_text_submit(horde: Horde) -> None:
    _, generation_id = horde.in_flight()

    status, body = horde.reply(generation_id, message=None, finish_reason=None, model_id=None)

    assert (status, body["errors"]) == (400, {"generation": "Field required."})


@pytest.mark.spec("SUB-43")
def test_refuses_a_text_body_for_a_chat_job(horde: Horde) -> None:
    _, generation_id = horde.in_flight()

    status, body = horde.reply(generation_id, message=None, finish_reason=None, model_id=None, generation="hello")

    assert (status, body["rc"]) == (400, "ChatSubmitInvalid")


@pytest.mark.spec("SUB-45")
@pytest.mark.parametrize(
    "sent", [{"finish_reason": "stop"}, {"message": {"role": "assistant", "content": "x"}}, {"fault_reason": None}]
)
def test_refuses_a_fault_without_its_model_that_is_a_chat_submit_by_another_key(
    horde: Horde, sent: dict[str, Any]
) -> None:
    request_id, generation_id = horde.in_flight()
    body = {"id": generation_id, "state": "faulted", **sent}

    answer = horde.call("POST", "generate/text/submit", body, api_key=horde.owner.api_key)

    assert answer == (400, {"message": "'model_id' is required on a chat submit.", "rc": "ChatSubmitInvalid"})
    assert horde.status(request_id)[1]["processing"] == 1
    assert one_value("SELECT chat_fault_rc FROM waiting_prompts") is None


@pytest.mark.spec("SUB-25", "SUB-26", "FLW-04")
def test_gives_a_job_back(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    before = count_rows("transfers")

    assert horde.fault(generation_id) == (200, {"reward": 0.0})

    status = horde.status(request_id)[1]
    assert (status["waiting"], status["processing"], status["restarted"]) == (1, 0, 1)
    assert one_value("SELECT aborted_jobs + uncompleted_jobs FROM workers") == 2
    assert count_rows("transfers", "queue_rows") == before | {"queue_rows": 1}
    assert horde.pop()[1]["id"] not in {None, generation_id}


@pytest.mark.parametrize(("end", "outcome"), [(Horde.reply, "completed"), (Horde.fault, "faulted")])
def test_logs_and_counts_how_a_job_ended_and_not_that_it_is_ended_again(
    horde: Horde, caplog: pytest.LogCaptureFixture, end: Callable[[Horde, str], Answer], outcome: str
) -> None:
    request_id, generation_id = horde.in_flight()
    one_value("UPDATE processing_gens SET created = created - interval '70 s' RETURNING 1")
    before = counts_of("horde_replies", "outcome")

    with caplog.at_level("INFO"):
        answers = [end(horde, generation_id), end(horde, generation_id)]

    assert [status for status, _ in answers] == [200, 400]
    [line] = [vars(record) for record in caplog.records if record.getMessage() == "horde.job_submit.done"]
    taken = one_value("SELECT extract(epoch FROM finished_at - created) FROM processing_gens")
    assert (
        line
        | {
            "outcome": outcome,
            "generation_id": UUID(generation_id),
            "waiting_prompt_id": UUID(request_id),
            "worker_id": one_value("SELECT id FROM workers"),
            "seconds": round(float(taken), 3),
        }
        == line
    )
    assert counts_of("horde_replies", "outcome") == before | {(outcome,): before.get((outcome,), 0) + 1}


@pytest.mark.spec("FLW-04")
def test_gives_a_slot_back_as_it_was_queued(horde: Horde) -> None:
    look = "SELECT queue_rows::text FROM queue_rows"
    horde.queued(tools=[{"type": "function", "function": {"name": "look"}}], temperature=0.7)
    queued = one_value(look)
    generation_id = horde.pop(**ABLE)[1]["id"]
    assert count_rows("queue_rows") == {"queue_rows": 0}

    horde.fault(generation_id)

    assert one_value(look) == queued


@pytest.mark.spec("SUB-27", "LSE-26")
def test_refuses_a_second_fault_and_a_late_reply(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.fault(generation_id)

    for status, body in (horde.fault(generation_id), horde.reply(generation_id, message=None)):
        assert (status, body) == (
            400,
            {
                "message": f"Processing Generation with ID {generation_id} took too long to process "
                "and has been aborted! Generations must complete within 150 seconds.",
                "rc": "AbortedGen",
            },
        )
    assert one_value("SELECT n FROM waiting_prompts WHERE id = %s", [request_id]) == 1


@pytest.mark.spec("SUB-44")
def test_takes_a_fault_sent_as_a_text_body(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()

    assert horde.fault(generation_id, model_id=None, generation="") == (200, {"reward": 0})

    body = horde.status(request_id)[1]
    assert (body["waiting"], body["processing"], body["restarted"]) == (1, 0, 1)
    assert record_of(request_id) == NO_RECORD


@pytest.mark.spec("SUB-22")
def test_refuses_a_fault_that_carries_replies_of_both_families(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()

    status, body = horde.reply(generation_id, state="faulted", generation="")

    assert (status, body["rc"]) == (400, "ChatSubmitInvalid")
    assert record_of(request_id) == NO_RECORD, "a fault is no reply"
    assert one_value("SELECT faulted FROM processing_gens") is False


def test_refuses_a_fault_with_another_model(horde: Horde) -> None:
    _, generation_id = horde.in_flight()

    assert horde.fault(generation_id, model_id="other")[1]["rc"] == "ChatModelMismatch"
    assert one_value("SELECT faulted FROM processing_gens") is False
