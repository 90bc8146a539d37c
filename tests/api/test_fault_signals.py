"""Of a chat request that fails its clients are told once, after the commit, and why; of a text request nothing."""

from datetime import timedelta

import pytest

from hordechat.infra import clock
from requests_app.services import expiry, faults
from tests.horde import MODEL, Horde, count_rows, one_value
from tests.races import slow_commits
from tests.signals import listening, looking_when_woken
from tests.tries import FAMILIES, NONCONFORMANT, lapse, refuse, strict_in_flight, sweep


@pytest.mark.spec("FLW-03", "SIG-16")
def test_is_published_once_by_the_fault_that_crosses_the_limit(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    heard_by_fault = []

    for _ in range(3):
        generation_id = committed_horde.pop()[1]["id"]
        with listening(request_id) as heard:
            committed_horde.fault(generation_id)
            committed_horde.fault(generation_id)
        heard_by_fault.append(heard)

    assert heard_by_fault == [[], [], [{"id": request_id, "event": "faulted", "generations": 0}]]


@pytest.mark.spec("SIG-14", "FLW-05")
def test_is_published_once_by_the_sweep_that_crosses_the_limit(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    heard_by_sweep = []

    for _ in range(3):
        committed_horde.pop()
        lapse()
        with listening(request_id) as heard:
            assert [faults.abort_lapsed(now=clock.now()) for _ in range(2)] == [1, 0]
        heard_by_sweep.append(heard)

    assert heard_by_sweep == [[], [], [{"id": request_id, "event": "faulted", "generations": 0}]]


@pytest.mark.spec("SIG-14", "SIG-16")
@pytest.mark.parametrize("lapses", [False, True])
def test_is_heard_when_the_fault_is_committed(committed_horde: Horde, lapses: bool) -> None:
    request_id = committed_horde.queued()
    for _ in range(2):
        committed_horde.fault(committed_horde.pop()[1]["id"])
    generation_id = committed_horde.pop()[1]["id"]
    look = "SELECT faulted, n, (SELECT count(*) FROM queue_rows) FROM waiting_prompts"

    with slow_commits("waiting_prompts"), looking_when_woken(request_id, look) as heard:
        (sweep if lapses else FAMILIES["chat"].give_back)(committed_horde, generation_id)

    assert heard == [("faulted", True, 0, 0)]


@pytest.mark.spec("SIG-16")
@pytest.mark.parametrize("given_up", [0, 3])
def test_is_not_published_again_by_the_jobs_still_in_flight(committed_horde: Horde, given_up: int) -> None:
    request_id, generation_id = committed_horde.in_flight()
    one_value("UPDATE waiting_prompts SET faulted = true, faulted_jobs = %s RETURNING 1", [given_up])

    with listening(request_id) as heard:
        committed_horde.fault(generation_id)

    assert heard == []
    assert one_value("SELECT n FROM waiting_prompts") == 0
    assert count_rows("queue_rows") == {"queue_rows": 0}


@pytest.mark.spec("SIG-08")
def test_of_an_expiry_says_why_to_who_finds_the_request_gone(committed_horde: Horde) -> None:
    request_id, generation_id = strict_in_flight(committed_horde)
    message = refuse(committed_horde, generation_id, NONCONFORMANT)

    with listening(request_id) as heard:
        assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

    assert committed_horde.status(request_id)[0] == 404
    details = {"fault_reason": message, "fault_rc": NONCONFORMANT}
    assert heard == [{"id": request_id, "event": "faulted", "generations": 0} | details]


@pytest.mark.spec("SIG-24")
@pytest.mark.parametrize(
    "end",
    ["its replies", "faults", "lapsed leases", "a cancel", "its expiry"],
)
def test_is_none_of_a_text_request_whatever_happens_to_it(committed_horde: Horde, end: str) -> None:
    horde = committed_horde
    request_id = horde.queued_text(params={"n": 3}, models=[MODEL])
    with listening(request_id) as heard:
        ids = horde.pop_text(amount=3)[1]["ids"]
        for generation_id in ids:
            if end == "its replies":
                assert horde.reply_text(generation_id)[0] == 200
            elif end == "faults":
                assert horde.reply_text(generation_id, "", state="faulted")[0] == 200
        if end == "lapsed leases":
            lapse()
            assert faults.abort_lapsed(now=clock.now()) == 3
        elif end == "a cancel":
            assert horde.call("DELETE", f"generate/text/status/{request_id}")[0] == 200
        elif end == "its expiry":
            assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

    assert heard == []
    if end not in {"a cancel", "its expiry"}:
        assert horde.text_status(request_id)[1]["done"] is True
