"""What blocks the head of the queue, or a status, must not block what stands behind it."""

from datetime import timedelta

from hordechat.infra import batches, clock
from requests_app.selectors.candidates import CANDIDATES_A_PAGE
from requests_app.services import expiry, faults
from tests.horde import Horde, count_rows, one_value


def test_expired_requests_that_were_not_swept_hide_no_other(horde: Horde) -> None:
    horde.pop()
    for _ in range(CANDIDATES_A_PAGE):
        horde.submit()
    one_value("UPDATE waiting_prompts SET expiry = now() - interval '1 s' RETURNING 1")
    last = horde.submit()[1]["id"]

    job = horde.pop()[1]["id"]

    assert one_value("SELECT request_id::text FROM processing_gens WHERE id = %s", [job]) == last


def test_a_run_goes_on_until_nothing_is_overdue(horde: Horde) -> None:
    horde.pop()
    for _ in range(5):
        horde.submit()
        horde.pop()
    late = clock.now() + timedelta(hours=1)

    assert batches.run_all(lambda: faults.abort_lapsed(now=late, limit=2), full=2) == 5
    assert expiry.expire_all(now=late) == 5
    assert count_rows("waiting_prompts", "processing_gens") == {"waiting_prompts": 0, "processing_gens": 0}


def test_a_status_counts_failed_tries_without_reading_them(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    horde.fault(generation_id)
    job = horde.pop()[1]["id"]
    horde.reply(job)

    body = horde.status(request_id)[1]

    assert (body["finished"], body["restarted"], len(body["generations"])) == (1, 1, 1)
