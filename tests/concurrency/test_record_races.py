"""Why tries failed is written under the request's lock, of a job that is pending, whoever comes at the same moment."""

import pytest

from billing_app.selectors import ledger
from tests.horde import Horde, one_value
from tests.races import PARALLEL, at_once, behind_a_lock_on, codes
from tests.tries import INVALID, NONCONFORMANT, REFUSED, counters, record_of, strict_in_flight


@pytest.mark.parametrize("submit", [{"finish_reason": "tired"}, {"state": "faulted", "fault_reason": "tool_violation"}])
def test_a_record_waits_for_its_request_and_holds_nothing_meanwhile(
    committed_horde: Horde, submit: dict[str, str]
) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with behind_a_lock_on(request_id) as line:
        line.join(lambda: committed_horde.reply(generation_id, **submit))
        assert one_value("SELECT count(*) FROM (SELECT 1 FROM processing_gens FOR UPDATE NOWAIT) g") == 1

    assert record_of(request_id)[1] in {INVALID, "ChatWorkerFault"}


@pytest.mark.spec("RFL-06")
@pytest.mark.parametrize("attempt", range(3))
def test_many_refusals_leave_the_record_of_one_of_them_whole(committed_horde: Horde, attempt: int) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)
    kinds = [list(REFUSED)[number % len(REFUSED)] for number in range(PARALLEL)]

    answers = at_once(
        *[lambda rc=rc: committed_horde.reply(generation_id, **REFUSED[rc]) for rc in kinds],
    )

    assert codes(answers) == sorted(kinds)
    messages = {body["rc"]: body["message"] for _, body in answers}
    reason, rc = record_of(request_id)
    assert rc is not None
    assert reason == messages[rc]
    assert one_value("SELECT chat_refusal_rc FROM processing_gens") == rc


@pytest.mark.spec("RFL-09", "RFL-14", "RFL-26")
@pytest.mark.parametrize("attempt", range(5))
def test_a_refusal_against_a_fault_is_recorded_as_it_is_counted(committed_horde: Horde, attempt: int) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)

    refused, fault = at_once(
        lambda: committed_horde.reply(generation_id, **REFUSED[NONCONFORMANT]),
        lambda: committed_horde.fault(generation_id, fault_reason="generation_error"),
    )

    assert fault[0] == 200
    assert codes([refused])[0] in {NONCONFORMANT, "AbortedGen"}
    is_recorded = one_value("SELECT chat_refusal_rc FROM processing_gens") == NONCONFORMANT
    assert counters() == ((0, 0, 1) if is_recorded else (1, 1, 0))
    assert record_of(request_id)[1] == (NONCONFORMANT if is_recorded else "ChatWorkerFault")


@pytest.mark.parametrize("attempt", range(3))
def test_refusals_replies_and_faults_of_one_job_disturb_none_of_them(committed_horde: Horde, attempt: int) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)

    answers = at_once(
        *[lambda: committed_horde.reply(generation_id, **REFUSED[INVALID])] * 5,
        *[lambda: committed_horde.reply(generation_id, message={"role": "assistant", "content": "{}"})] * 5,
        *[lambda: committed_horde.fault(generation_id, fault_reason="generation_error")] * 5,
    )

    ended = codes(answers)
    assert ended.count("200") == 1
    assert set(ended) <= {"200", INVALID, "DuplicateGen", "AbortedGen"}
    is_stored = one_value("SELECT generation IS NOT NULL FROM processing_gens")
    assert committed_horde.status(request_id)[1]["finished"] == int(is_stored)
    assert ledger.reconcile().is_sound
