"""A text request walks from submit over pop and reply to its status, under the rules of old text workers."""

from decimal import Decimal
from typing import Any

import pytest
from prometheus_client import REGISTRY

from billing_app.selectors import ledger
from hordechat.infra.logging import TextFormatter
from tests.horde import MODEL, Answer, Horde, make_person, one_value

DEFAULTS = {
    "max_length": 80,
    "max_context_length": 2048,
    "min_p": 0.0,
    "smoothing_factor": 0.0,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
}


@pytest.mark.spec("RTE-21", "POP-01", "ELG-24", "DCL-10", "LSE-02", "LSE-20")
def test_a_job_is_handed_out_in_the_shape_old_workers_know(horde: Horde) -> None:
    request_id = horde.queued_text(params={"temperature": 0.5, "top_k": 3}, models=[MODEL])

    status, body = horde.pop_text()

    generation_id = str(one_value("SELECT id FROM processing_gens"))
    assert (status, body) == (
        200,
        {
            "id": generation_id,
            "ids": [generation_id],
            "payload": DEFAULTS | {"temperature": 0.5, "top_k": 3, "prompt": "Once upon a time", "n": 1},
            "model": MODEL,
            "ttl": 150,
            "skipped": {},
            "messages": [],
            "softprompt": None,
            "extra_source_images": None,
        },
    )
    body = horde.text_status(request_id)[1]
    assert (body["processing"], body["waiting"], body["is_possible"]) == (1, 0, True)
    assert one_value("SELECT count(*) FROM queue_rows") == 0


@pytest.mark.spec("POP-35", "SUB-01")
def test_its_reply_is_stored_charged_paid_and_shown(horde: Horde) -> None:
    request_id = horde.queued_text(models=[MODEL])
    generation_id = horde.pop_text()[1]["id"]

    status, body = horde.reply_text(generation_id, "x\0y" + "z" * 400, seed=7)

    assert status == 200
    shown = horde.text_status(request_id)[1]
    assert shown["done"] is True
    assert shown["generations"][0] | {"worker_id": None} == {
        "worker_id": None,
        "worker_name": "text worker",
        "model": MODEL,
        "state": "ok",
        "text": "x\ufffdy" + "z" * 400,
        "seed": 7,
        "gen_metadata": [],
    }
    # A trusted owner of a model nobody knows: 80 tokens at most, x 0.027 x C(20 prompt tokens).
    charge = Decimal(str(shown["kudos"]))
    assert charge == Decimal(str(body["reward"])) + 2
    assert horde.kudos(horde.requester) == 10_000 - charge
    assert ledger.reconcile().is_sound
    columns = "(assigned_model IS NULL, assigned_max_length IS NULL, message IS NULL, charge_basis IS NULL)::text"
    assert one_value(f"SELECT {columns} FROM processing_gens") == "(t,t,t,t)"


@pytest.mark.parametrize(("asked", "amount", "handed"), [(1, 20, [1]), (5, 2, [2, 2, 1]), (3, 3, [3]), (2, 1, [1, 1])])
def test_a_batch_takes_as_many_slots_as_the_worker_wants(
    horde: Horde, asked: int, amount: int, handed: list[int]
) -> None:
    request_id = horde.queued_text(params={"n": asked})
    assert one_value("SELECT consumed_kudos FROM waiting_prompts") == 1

    batches = [horde.pop_text(amount=amount)[1]["ids"] for _ in handed]

    assert [len(ids) for ids in batches] == handed
    assert horde.pop_text(amount=amount)[1]["id"] is None
    for ids in batches:
        for generation_id in ids:
            assert horde.reply_text(generation_id)[0] == 200
    body = horde.text_status(request_id)[1]
    assert (body["done"], body["finished"], len(body["generations"])) == (True, asked, asked)
    assert ledger.reconcile().is_sound


def test_a_batch_has_one_model_that_both_sides_name(horde: Horde) -> None:
    horde.queued_text(params={"n": 20}, models=["org/a", MODEL, "org/b"])

    body = horde.pop_text(models=["org/c", MODEL, "org/b"], amount=20)[1]

    assert body["model"] in {MODEL, "org/b"}
    assert one_value("SELECT count(DISTINCT model) FROM processing_gens") == 1
    horde.queued_text()
    assert horde.pop_text(models=["org/c"])[1]["model"] == "org/c"


@pytest.mark.spec("DCL-09", "ELG-25", "ELG-23", "RTE-20")
def test_each_family_goes_to_the_workers_that_take_it(horde: Horde) -> None:
    horde.queued()
    horde.queued_text(models=[MODEL])

    assert "chat" not in horde.pop_text()[1]
    assert horde.pop_text()[1]["id"] is None, "an old worker never sees a chat job"
    horde.queued_text(models=[MODEL])
    assert horde.pop()[1]["chat"] is True
    assert horde.pop()[1]["id"] is None, "prompt_jobs is false"
    assert "chat" not in horde.pop(prompt_jobs=None)[1]


@pytest.mark.spec("DCL-18", "DCL-19")
def test_each_family_has_limits_of_its_own(horde: Horde) -> None:
    limits: dict[str, Any] = {"prompt_jobs": None, "max_length": 79, "max_context_length": 80}
    horde.pop(**limits)
    horde.submit(max_tokens=1000)
    horde.submit_text()

    assert horde.pop(**limits)[1]["chat"] is True
    assert horde.pop(**limits)[1]["id"] is None
    assert "chat" not in horde.pop(**limits | {"max_length": 80, "max_context_length": 2048})[1]


def test_its_fault_gives_the_slot_back(horde: Horde) -> None:
    request_id = horde.queued_text()
    generation_id = horde.pop_text()[1]["id"]

    assert horde.reply_text(generation_id, "faulted", state="faulted") == (200, {"reward": 0})

    body = horde.text_status(request_id)[1]
    assert (body["waiting"], body["processing"], body["restarted"]) == (1, 0, 1)
    assert horde.pop_text()[1]["id"] is not None


@pytest.mark.parametrize("cause", [{"state": "censored"}, {"gen_metadata": [{"type": "censorship", "value": "csam"}]}])
def test_a_censored_reply_costs_the_burn_alone_and_is_paid(horde: Horde, cause: dict[str, Any]) -> None:
    request_id = horde.queued_text(models=[MODEL])

    reward = horde.reply_text(horde.pop_text()[1]["id"], **cause)[1]["reward"]

    body = horde.text_status(request_id)[1]
    assert reward > 0
    assert body["kudos"] == 2
    assert body["generations"][0]["state"] == ("censored" if "state" in cause else "csam")
    assert ledger.reconcile().is_sound


@pytest.mark.spec("SUB-23")
@pytest.mark.parametrize("state", ["ok", "csam", "faulted"])
@pytest.mark.parametrize("text", [{}, {"generation": "a text"}])
def test_no_submit_of_it_carries_a_message(horde: Horde, text: dict[str, str], state: str) -> None:
    horde.queued_text(models=[MODEL])
    generation_id = horde.pop_text()[1]["id"]

    assert horde.reply(generation_id, state=state, **text) == (
        400,
        {"message": "A text job's reply carries 'generation' and no 'message'.", "rc": "ChatSubmitInvalid"},
    )

    assert horde.reply_text(generation_id)[0] == 200


@pytest.mark.spec("SUB-50")
@pytest.mark.parametrize("stray", [{"model_id": "x"}, {"finish_reason": "y"}, {"fault_reason": "z"}])
def test_a_reply_is_judged_by_its_job_and_not_by_its_keys(horde: Horde, stray: dict[str, str]) -> None:
    request_id = horde.queued_text(params={"n": 2}, models=[MODEL])
    stored, given_back = horde.pop_text(amount=2)[1]["ids"]

    def submit(**body: str) -> Answer:
        return horde.call("POST", "generate/text/submit", body | stray, api_key=horde.owner.api_key)

    assert submit(id=stored)[1]["rc"] == "ChatSubmitInvalid"
    assert submit(id=stored, generation="a text")[0] == 200
    assert submit(id=given_back, state="faulted") == (200, {"reward": 0})

    shown = horde.text_status(request_id)[1]
    assert [generation["text"] for generation in shown["generations"]] == ["a text"]
    assert (shown["waiting"], shown["processing"], shown["restarted"]) == (1, 0, 1)


@pytest.mark.parametrize(
    "metadata",
    [
        [{"type": "censorship", "value": "csam", "ref": "x" * 256}],
        [{"type": "other", "value": "csam"}],
        [{"type": "censorship", "value": "csam"}] * 51,
        {},
        "x",
    ],
)
def test_metadata_is_judged_before_anything_is_stored(horde: Horde, metadata: object) -> None:
    horde.queued_text()
    generation_id = horde.pop_text()[1]["id"]

    status, body = horde.reply_text(generation_id, gen_metadata=metadata)

    assert (status, body["rc"]) == (400, "BadRequest")
    assert one_value("SELECT generation IS NULL FROM processing_gens") is True


def test_a_nul_character_in_metadata_is_replaced_like_one_in_the_text(horde: Horde) -> None:
    request_id = horde.queued_text()
    generation_id = horde.pop_text()[1]["id"]
    found = {"type": "censorship", "value": "csam"}

    status, _ = horde.reply_text(generation_id, gen_metadata=[found | {"ref": "a\0b"}, found])

    assert status == 200
    shown = horde.text_status(request_id)[1]["generations"][0]["gen_metadata"]
    assert shown == [found | {"ref": "a\ufffdb"}, found]


def assignments(size: str) -> float:
    labels = {"worker_trusted": "true", "size_bucket": size}
    return REGISTRY.get_sample_value("horde_text_gate_shadow_assignments_total", labels) or 0


@pytest.mark.spec("SPD-10", "SPD-11", "SPD-12", "SPD-17", "SPD-22")
def test_a_job_beyond_the_workers_capacity_is_handed_out_and_recorded(
    horde: Horde, caplog: pytest.LogCaptureFixture
) -> None:
    before = assignments("1025-2048")
    request_ids = [
        horde.queued_text(params={"max_length": length, "max_context_length": 2048}) for length in (1200, 1201)
    ]

    with caplog.at_level("INFO"):
        ids = [horde.pop_text(max_length=4096)[1]["id"] for _ in range(2)]

    assert (
        one_value("SELECT array_agg(over_capacity_at_assignment ORDER BY created, id) FROM processing_gens") is not None
    )
    assert one_value("SELECT id::text FROM processing_gens WHERE over_capacity_at_assignment") == ids[1]
    [record] = [each for each in caplog.records if each.getMessage() == "over capacity"]
    worker_id = one_value("SELECT DISTINCT worker_id::text FROM processing_gens")
    assert record.levelname == "INFO"
    assert (
        TextFormatter()
        .format(record)
        .endswith(
            f": over capacity generation_id={ids[1]} waiting_prompt_id={request_ids[1]} worker_id={worker_id} "
            "max_length=1201 capacity=1200 speed=null"
        )
    )
    assert assignments("1025-2048") == before + 1


@pytest.mark.spec("SPD-14")
def test_a_chat_job_is_never_recorded_so(horde: Horde) -> None:
    horde.in_flight()

    assert one_value("SELECT over_capacity_at_assignment FROM processing_gens") is False


def test_the_poor_are_served_in_their_turn(horde: Horde) -> None:
    first = horde.queued_text(api_key=make_person("poor").api_key)
    second = horde.queued()

    horde.pop_text()

    assert horde.text_status(first)[1]["processing"] == 1
    assert horde.status(second)[1]["processing"] == 0
