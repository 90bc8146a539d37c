"""How many statements each hot route costs, BEGIN and COMMIT included (savepoints stand for them inside a test).

The counts are exact, so that a statement more is a decision and not an accident; the bounds they keep are the
architecture's.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from tests.horde import MODEL, Horde, one_value

LARGE_COLUMNS = ("messages", "chat_extras")


def statements_of(call: Callable[[], tuple[int, dict[str, Any]]], *, status: int = 200) -> list[str]:
    """Return the statements one call costs."""
    with CaptureQueriesContext(connection) as captured:
        answered, body = call()
    assert answered == status, body
    return [query["sql"] for query in captured]


def test_an_idle_pop_costs_2(horde: Horde) -> None:
    horde.pop()

    assert len(statements_of(horde.pop)) == 2


def test_a_pop_that_changes_its_declaration_costs_3(horde: Horde) -> None:
    horde.pop()

    assert len(statements_of(lambda: horde.pop(chat_features=[]))) == 3


def test_a_pop_outside_of_the_window_costs_3(horde: Horde) -> None:
    horde.pop()
    one_value("UPDATE workers SET last_check_in = now() - interval '31 s' RETURNING 1")

    assert len(statements_of(horde.pop)) == 3


def test_a_first_pop_costs_8(horde: Horde) -> None:
    assert len(statements_of(horde.pop)) == 8


def test_a_pop_with_a_job_costs_6(horde: Horde) -> None:
    horde.queued()

    statements = statements_of(horde.pop)

    assert len(statements) == 6
    named = [statement for statement in statements if re.search(r"\bmessages\b", statement)]
    assert [statement.split(":")[0] for statement in named] == ["-- claim"]


def test_an_accepted_submit_costs_8(horde: Horde) -> None:
    horde.pop()

    assert len(statements_of(horde.submit, status=202)) == 8


@pytest.mark.spec("MDL-19", "MDL-20")
def test_an_accepted_submit_asks_for_the_fleet_once(horde: Horde) -> None:
    horde.pop()

    statements = statements_of(horde.submit, status=202)

    assert [text.split(":")[0] for text in statements if "FROM workers" in text] == ["-- chat_fleet"]


def test_an_accepted_text_submit_costs_8(horde: Horde) -> None:
    assert len(statements_of(horde.submit_text, status=202)) == 8


def test_a_hold_costs_one_more(horde: Horde, settings: Settings) -> None:
    horde.pop()
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 16, "free_output_floor": 16})

    assert len(statements_of(horde.submit, status=202)) == 9


def test_a_shared_key_costs_one_more(horde: Horde) -> None:
    horde.pop()
    key = horde.share_key(horde.requester)

    assert len(statements_of(lambda: horde.submit(api_key=key), status=202)) == 9


@pytest.mark.parametrize("text", [{}, {"models": [MODEL]}, {"workers": True}])
def test_a_text_submit_costs_the_same_whatever_it_names(horde: Horde, text: dict[str, Any]) -> None:
    horde.pop()
    if "workers" in text:
        text = {"workers": [str(one_value("SELECT id FROM workers"))]}

    assert len(statements_of(lambda: horde.submit_text(**text), status=202)) == 8


def test_a_flagged_user_costs_one_more(horde: Horde) -> None:
    horde.pop()
    one_value("UPDATE users SET is_flagged = true WHERE id = %s RETURNING 1", [horde.requester.id])

    assert len(statements_of(horde.submit, status=202)) == 9


@pytest.mark.parametrize("family", ["chat", "text"])
def test_a_refused_key_costs_no_more_than_the_look(horde: Horde, family: str) -> None:
    submit = horde.submit if family == "chat" else horde.submit_text
    calls = statements_of(lambda: submit(api_key="nobody"), status=401)

    assert len(calls) == (1 if family == "chat" else 2), "text is sized first, and asks who serves for that"


@pytest.mark.parametrize("changes", [{"model": "no/model"}, {"messages": [{"role": "user", "content": "x" * 90_000}]}])
def test_a_refused_submit_costs_2(horde: Horde, changes: dict[str, Any]) -> None:
    horde.pop()

    with CaptureQueriesContext(connection) as captured:
        assert horde.submit(**changes)[0] >= 400

    assert len(captured) == 2


def test_a_body_that_is_refused_costs_none(horde: Horde) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert horde.submit(max_tokens=1)[0] == 400
        assert horde.pop(name=5)[0] == 400

    assert len(captured) == 0


def test_a_stored_reply_costs_6(horde: Horde) -> None:
    _, generation_id = horde.in_flight()

    assert len(statements_of(lambda: horde.reply(generation_id))) == 6


@pytest.mark.spec("SUB-30", "SUB-31")
def test_a_reply_of_either_family_claims_and_writes_its_generation_in_one_statement(horde: Horde) -> None:
    _, chat = horde.in_flight()
    horde.queued_text(models=[MODEL])
    text = horde.pop_text()[1]["id"]

    for statements in (statements_of(lambda: horde.reply(chat)), statements_of(lambda: horde.reply_text(text))):
        written = [statement for statement in statements if "UPDATE processing_gens" in statement]
        assert [statement.split(":")[0] for statement in written] == ["-- store_reply"]


def test_a_fault_costs_4(horde: Horde) -> None:
    _, generation_id = horde.in_flight()

    assert len(statements_of(lambda: horde.fault(generation_id))) == 4


@pytest.mark.spec("RFL-02")
def test_a_refused_reply_costs_2(horde: Horde) -> None:
    _, generation_id = horde.in_flight()

    statements = statements_of(lambda: horde.reply(generation_id, finish_reason="tired"), status=400)

    # The record is a statement by itself, in no transaction but its own.
    assert [text.split(":")[0] for text in statements] == ["-- submit_facts", "-- record_refusal"]


@pytest.mark.spec("WFR-09")
def test_a_fault_with_a_known_reason_costs_5_and_an_unknown_reason_nothing(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    assert len(statements_of(lambda: horde.fault(generation_id, fault_reason="a reason of tomorrow"))) == 4
    generation_id = horde.pop()[1]["id"]

    statements = statements_of(lambda: horde.fault(generation_id, fault_reason="generation_error"))

    assert len(statements) == 5
    # Written before the transaction of the fault begins.
    assert [text.split(":")[0].split()[0:2] for text in statements[1:4]] == [
        ["--", "record_fault_reason"],
        ["SAVEPOINT", statements[2].split()[1]],
        ["--", "give_back"],
    ]


def test_the_fault_that_faults_its_request_costs_6(horde: Horde) -> None:
    horde.queued()
    for _ in range(2):
        horde.fault(horde.pop()[1]["id"])
    generation_id = horde.pop()[1]["id"]

    statements = statements_of(lambda: horde.fault(generation_id))

    assert len(statements) == 6
    assert [text.split(":")[0] for text in statements if text.startswith("--")] == [
        "-- submit_facts",
        "-- give_back",
        "-- dequeue",
        "-- progress",
    ]


def test_the_hold_of_a_faulted_request_costs_one_more(horde: Horde, settings: Settings) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 16, "free_output_floor": 16})
    _, generation_id = horde.in_flight()
    one_value("UPDATE waiting_prompts SET faulted_jobs = 2 RETURNING 1")

    assert len(statements_of(lambda: horde.fault(generation_id))) == 7


@pytest.mark.spec("WFR-11")
@pytest.mark.parametrize("state", ["stored", "faulted"])
def test_a_submit_of_a_job_that_is_not_pending_costs_no_more_than_the_look(horde: Horde, state: str) -> None:
    _, generation_id = horde.in_flight()
    if state == "stored":
        horde.reply(generation_id)
    else:
        horde.fault(generation_id)

    late = {"finish_reason": "tired"}
    assert len(statements_of(lambda: horde.reply(generation_id, **late), status=400)) == 1
    assert len(statements_of(lambda: horde.fault(generation_id, fault_reason="generation_error"), status=400)) == 1


@pytest.mark.spec("FLW-23", "FLW-24")
def test_a_status_costs_2_with_the_flags_first(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.reply(generation_id)

    statements = statements_of(lambda: horde.status(request_id))

    assert len(statements) == 2
    assert "-- status" in statements[0]
    assert "-- generations" in statements[1]


@pytest.mark.spec("FLW-23", "FLW-24")
def test_a_text_status_costs_2_and_a_cancel_7(horde: Horde) -> None:
    request_id = horde.queued_text()

    assert len(statements_of(lambda: horde.text_status(request_id))) == 2
    assert len(statements_of(lambda: horde.call("DELETE", f"generate/text/status/{request_id}"))) == 7


def test_a_cancel_costs_7(horde: Horde) -> None:
    request_id = horde.queued()

    assert len(statements_of(lambda: horde.cancel(request_id))) == 7


def test_find_user_costs_2(horde: Horde) -> None:
    horde.pop()

    assert len(statements_of(lambda: horde.call("GET", "find_user", api_key=horde.owner.api_key))) == 2


def test_the_heartbeat_costs_none(horde: Horde) -> None:
    assert len(statements_of(lambda: horde.call("GET", "status/heartbeat"))) == 0


def test_a_submit_that_lists_models_costs_no_more(horde: Horde) -> None:
    horde.pop()
    horde.pop(name="worker two", models=["other/model"], model_id="other/model")

    calls = statements_of(lambda: horde.submit(model=None, models=[MODEL, "other/model"]), status=202)

    assert len(calls) == 8


def test_an_operation_key_costs_one_more(horde: Horde) -> None:
    horde.pop()
    options = {"operation_key": "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"}

    assert len(statements_of(lambda: horde.submit(horde=options), status=202)) == 9
    assert len(statements_of(lambda: horde.submit(horde=options))) == 1


def test_a_dry_run_costs_2(horde: Horde) -> None:
    horde.pop()

    assert len(statements_of(lambda: horde.submit(horde={"dry_run": True}))) == 2
    assert len(statements_of(lambda: horde.submit_text(dry_run=True))) == 2
