"""Whoever races for the fault that is one too many: the request ends once, offers no more, and no kudos go astray."""

from datetime import timedelta
from decimal import Decimal

import pytest
from pytest_django import Settings

from billing_app.selectors import ledger
from hordechat.contract.limits import FAULTED_GENERATIONS_LIMIT
from hordechat.infra import clock
from requests_app.services import faults
from tests.horde import Horde, one_value
from tests.races import at_once, behind_a_lock_on, codes
from tests.signals import listening

STATE = "SELECT (faulted, n, faulted_jobs, (SELECT count(*) FROM queue_rows))::text FROM waiting_prompts"


def popped_batch(horde: Horde, *, n: int, amount: int) -> tuple[str, list[str]]:
    """Queue a text request of some generations and hand out a batch of them."""
    horde.pop_text()
    request_id = horde.queued_text(params={"n": n})
    ids: list[str] = horde.pop_text(amount=amount)[1]["ids"]
    assert len(ids) == amount
    return request_id, ids


def give_back(horde: Horde, generation_id: str) -> tuple[int, dict[str, object]]:
    return horde.reply_text(generation_id, "", state="faulted")


@pytest.mark.parametrize("attempt", range(5))
def test_more_faults_than_the_limit_end_the_request_once(committed_horde: Horde, attempt: int) -> None:
    _, ids = popped_batch(committed_horde, n=6, amount=5)

    answers = at_once(*[lambda each=each: give_back(committed_horde, each) for each in ids])

    assert codes(answers) == ["200"] * 5
    assert one_value(STATE) == "(t,0,5,0)"
    assert one_value("SELECT count(*) FROM processing_gens WHERE faulted") == 5
    assert committed_horde.pop_text()[1]["id"] is None


def test_a_fault_over_the_limit_takes_out_what_the_one_before_it_put_back(committed_horde: Horde) -> None:
    request_id, ids = popped_batch(committed_horde, n=3, amount=3)
    give_back(committed_horde, ids[0])
    one_value("DELETE FROM queue_rows RETURNING 1")
    one_value("UPDATE waiting_prompts SET n = 0 RETURNING 1")

    with behind_a_lock_on(request_id) as line:
        line.join(lambda: give_back(committed_horde, ids[1]))
        line.join(lambda: give_back(committed_horde, ids[2]))

    assert one_value(STATE) == "(t,0,3,0)"


def test_a_cancel_behind_the_fault_that_ends_its_request_changes_nothing(committed_horde: Horde) -> None:
    request_id, ids = popped_batch(committed_horde, n=4, amount=4)
    for each in ids[:FAULTED_GENERATIONS_LIMIT]:
        give_back(committed_horde, each)

    with behind_a_lock_on(request_id) as line:
        line.join(lambda: give_back(committed_horde, ids[2]))
        line.join(lambda: committed_horde.call("DELETE", f"generate/text/status/{request_id}"))

    assert one_value(STATE) == "(t,0,3,0)"
    assert one_value("SELECT cancelled_at FROM waiting_prompts") is None


@pytest.mark.parametrize("attempt", range(5))
def test_a_pop_gets_the_last_slot_before_the_end_or_none(committed_horde: Horde, attempt: int) -> None:
    _, ids = popped_batch(committed_horde, n=4, amount=3)
    for each in ids[:FAULTED_GENERATIONS_LIMIT]:
        give_back(committed_horde, each)

    fault, (_, popped) = at_once(
        lambda: give_back(committed_horde, ids[-1]), lambda: committed_horde.pop_text(amount=1)
    )

    assert fault[0] == 200
    assert one_value(STATE) == "(t,0,3,0)"
    in_flight = one_value("SELECT count(*) FROM processing_gens WHERE generation IS NULL AND NOT faulted")
    assert in_flight == (0 if popped["id"] is None else 1)
    if popped["id"] is not None:
        # What was handed out before may still be served, and is paid; the request stays faulted (FLW-29).
        assert committed_horde.reply_text(popped["id"])[0] == 200
        assert one_value("SELECT faulted FROM waiting_prompts") is True
    assert ledger.reconcile().is_sound


@pytest.fixture
def holding_horde(committed_horde: Horde, settings: Settings) -> Horde:
    """A horde whose requests are all above the free allowance, so that kudos are held for them."""
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 20, "free_output_floor": 10})
    return committed_horde


def last_try(horde: Horde) -> tuple[str, str]:
    """Bring a chat request into its last try; return its id and the generation's."""
    request_id, generation_id = horde.in_flight()
    for _ in range(FAULTED_GENERATIONS_LIMIT):
        assert horde.fault(generation_id)[0] == 200
        generation_id = horde.pop()[1]["id"]
    assert held_kudos(horde) > 0
    return request_id, generation_id


def held_kudos(horde: Horde) -> Decimal:
    statement = "SELECT held_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'"
    return Decimal(one_value(statement, [horde.requester.id]))


@pytest.mark.parametrize("attempt", range(5))
def test_a_reply_against_the_fault_that_ends_its_request(holding_horde: Horde, attempt: int) -> None:
    horde = holding_horde
    request_id, generation_id = last_try(horde)

    with listening(request_id) as heard:
        reply, fault = at_once(lambda: horde.reply(generation_id), lambda: horde.fault(generation_id))

    assert codes([reply, fault]) in (["200", "AbortedGen"], ["200", "DuplicateGen"])
    is_stored = reply[0] == 200
    assert one_value(STATE) == ("(f,0,2,0)" if is_stored else "(t,0,3,0)")
    assert [message["event"] for message in heard] == (["generation", "done"] if is_stored else ["faulted"])
    assert held_kudos(horde) == 0
    assert ledger.reconcile().is_sound


@pytest.mark.spec("SIG-25")
@pytest.mark.parametrize("attempt", range(5))
def test_faults_cancel_and_sweep_of_the_last_try_announce_one_end(holding_horde: Horde, attempt: int) -> None:
    horde = holding_horde
    request_id, generation_id = last_try(horde)
    late = clock.now() + timedelta(seconds=200)

    with listening(request_id) as heard:
        at_once(
            *[lambda: horde.fault(generation_id)[0]] * 4,
            *[lambda: faults.abort_lapsed(now=late)] * 2,
            lambda: horde.cancel(request_id)[0],
        )

    is_cancelled = one_value("SELECT cancelled_at IS NOT NULL FROM waiting_prompts")
    assert one_value(STATE) == ("(f,0,3,0)" if is_cancelled else "(t,0,3,0)")
    assert [message["event"] for message in heard] == (["cancelled"] if is_cancelled else ["faulted"])
    assert horde.status(request_id)[1]["done"] is True
    assert held_kudos(horde) == 0
    assert one_value("SELECT uncompleted_jobs FROM workers") == 3
    assert ledger.reconcile().is_sound


def test_a_refusal_that_comes_after_the_reply_is_not_recorded(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        reply = line.join(lambda: committed_horde.reply(generation_id))
        refused = line.join(lambda: committed_horde.reply(generation_id, finish_reason="tired"))

    assert codes([reply.result()]) == ["200"]
    assert codes([refused.result()]) == ["ChatSubmitInvalid"]
    assert one_value("SELECT chat_fault_rc FROM waiting_prompts") is None
    assert one_value("SELECT chat_refusal_rc FROM processing_gens") is None


@pytest.mark.spec("RFL-26")
@pytest.mark.parametrize("attempt", range(3))
def test_nonconformant_tries_count_once_each_whoever_ends_them(committed_horde: Horde, attempt: int) -> None:
    ids = [committed_horde.in_flight()[1] for _ in range(4)]
    one_value("UPDATE processing_gens SET chat_refusal_rc = 'ChatSubmitNonconformant' RETURNING 1")
    late = clock.now() + timedelta(seconds=200)

    at_once(
        *[lambda each=each: committed_horde.fault(each)[0] for each in ids * 2],
        *[lambda: faults.abort_lapsed(now=late)] * 2,
    )

    assert one_value("SELECT (nonconformant_replies, aborted_jobs, uncompleted_jobs)::text FROM workers") == "(4,0,0)"
