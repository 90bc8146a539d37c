"""What is held for a request is free again once it is faulted or gone; what is in flight may still be stored."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from billing_app.selectors import ledger
from hordechat.infra import clock
from requests_app.services import expiry, faults
from tests.horde import MODEL, Horde, count_rows, one_value
from tests.signals import listening
from tests.tries import FAMILIES, lapse, standing, sweep


@pytest.fixture(autouse=True)
def low_ceiling(settings: Settings) -> None:
    """Let 100 tokens be free, whatever the load."""
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 100, "free_output_floor": 50})


def held(horde: Horde) -> Decimal:
    return Decimal(
        one_value("SELECT held_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", [horde.requester.id])
    )


@pytest.mark.spec("FLW-29")
@pytest.mark.parametrize("lapses", [False, True])
def test_is_given_back_whole_where_nothing_was_charged(horde: Horde, lapses: bool) -> None:
    horde.queued(max_tokens=512)
    assert held(horde) > 0
    for _ in range(2):
        horde.fault(horde.pop()[1]["id"])
    assert held(horde) > 0, "below the limit it is still held"

    (sweep if lapses else FAMILIES["chat"].give_back)(horde, horde.pop()[1]["id"])

    assert held(horde) == 0
    assert one_value("SELECT (resolution, settled_kudos)::text FROM holds") == "(voided,0.00)"
    assert horde.kudos(horde.requester) == 9_999
    assert ledger.reconcile().is_sound


@pytest.mark.spec("FLW-29")
@pytest.mark.parametrize("lapses", [False, True])
def test_is_settled_by_what_was_charged_and_the_rest_given_back(horde: Horde, lapses: bool) -> None:
    take: dict[str, Any] = {"max_length": 1024, "amount": 9}
    horde.pop_text(**take)
    request_id = horde.queued_text(params={"n": 6, "max_length": 512}, models=[MODEL])
    before = held(horde)
    ids = horde.pop_text(**take)[1]["ids"]
    horde.reply_text(ids[0], "x" * 400)
    charged = Decimal(str(horde.text_status(request_id)[1]["kudos"])) - 1
    assert 0 < charged < before == held(horde)

    lapse(*ids[1:4])
    if lapses:
        assert faults.abort_lapsed(now=clock.now()) == 3
    else:
        for generation_id in ids[1:4]:
            horde.reply_text(generation_id, "", state="faulted")

    assert held(horde) == 0
    assert one_value("SELECT resolution FROM holds") == "settled"
    assert one_value("SELECT settled_kudos FROM holds") == charged
    assert horde.kudos(horde.requester) == 9_999 - charged
    assert ledger.reconcile().is_sound


@pytest.mark.spec("FLW-29", "FLW-18", "FLW-06")
@pytest.mark.parametrize("tokens", [80, 512])
def test_does_not_keep_a_job_in_flight_from_being_stored_and_paid(horde: Horde, tokens: int) -> None:
    take: dict[str, Any] = {"max_length": 1024, "amount": 9}
    horde.pop_text(**take)
    request_id = horde.queued_text(params={"n": 5, "max_length": tokens}, models=[MODEL])
    ids = horde.pop_text(**take)[1]["ids"]
    for generation_id in ids[:3]:
        horde.reply_text(generation_id, "", state="faulted")
    free = horde.kudos(horde.requester)
    assert standing(horde.text_status(request_id)[1]) == (0, 2, 3, True, True)

    status, body = horde.reply_text(ids[3], "x" * 300)

    reward = Decimal(str(body["reward"]))
    assert (status, reward > 0) == (200, True)
    assert horde.kudos(horde.owner) == reward
    assert horde.kudos(horde.requester) == free - reward - 1
    shown = horde.text_status(request_id)[1]
    assert standing(shown) == (0, 1, 3, True, True)
    assert (shown["finished"], len(shown["generations"])) == (1, 1)
    assert horde.reply_text(ids[4], "", state="faulted")[0] == 200
    assert standing(horde.text_status(request_id)[1]) == (0, 0, 4, True, True)
    assert count_rows("queue_rows") == {"queue_rows": 0}
    assert held(horde) == 0
    assert ledger.reconcile().is_sound


@pytest.mark.spec("FLW-29")
def test_ends_without_a_word_of_done_when_the_last_job_in_flight_is_stored(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()
    one_value("UPDATE waiting_prompts SET faulted = true, faulted_jobs = 3 RETURNING 1")

    with listening(request_id) as heard:
        assert committed_horde.reply(generation_id)[0] == 200

    assert heard == [{"id": request_id, "event": "generation", "generations": 1}]
    shown = committed_horde.status(request_id)[1]
    assert (shown["faulted"], shown["finished"]) == (True, 1)


def test_is_settled_by_what_was_charged_where_the_request_expires_instead(horde: Horde) -> None:
    take: dict[str, Any] = {"max_length": 1024, "amount": 1}
    horde.pop_text(**take)
    request_id = horde.queued_text(params={"n": 2, "max_length": 512}, models=[MODEL])
    horde.queued_text(params={"n": 2, "max_length": 512}, models=[MODEL])
    horde.reply_text(horde.pop_text(**take)[1]["id"], "x" * 400)
    charged = Decimal(str(horde.text_status(request_id)[1]["kudos"])) - 1

    assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 2

    assert held(horde) == 0
    assert one_value("SELECT array_agg((resolution, settled_kudos)::text ORDER BY id) FROM holds") == [
        f"(settled,{charged})",
        "(voided,0.00)",
    ]
    assert ledger.reconcile().is_sound
