"""Each claim publishes once: who comes second, or loses, publishes nothing."""

from datetime import timedelta

import pytest

from hordechat.infra import clock
from requests_app.services import expiry
from tests.horde import Horde, one_value
from tests.races import PARALLEL, at_once, behind_a_lock_on, codes
from tests.signals import listening


@pytest.mark.spec("SIG-25", "FLW-30")
@pytest.mark.parametrize("is_in_flight", [False, True])
def test_two_cancels_announce_one(committed_horde: Horde, is_in_flight: bool) -> None:
    request_id = committed_horde.in_flight()[0] if is_in_flight else committed_horde.queued()

    with listening(request_id) as heard:
        with behind_a_lock_on(request_id) as line:
            cancels = [line.join(lambda: committed_horde.cancel(request_id)) for _ in range(2)]
        cancelled_at = one_value("SELECT cancelled_at FROM waiting_prompts")
        committed_horde.cancel(request_id)

    assert codes([cancel.result() for cancel in cancels]) == ["200", "200"]
    assert [message["event"] for message in heard] == ["cancelled"]
    assert one_value("SELECT cancelled_at FROM waiting_prompts") == cancelled_at


@pytest.mark.spec("SIG-25")
def test_many_sweeps_announce_an_expiry_once(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    later = clock.now() + timedelta(hours=1)

    with listening(request_id) as heard:
        counts = at_once(*[lambda: expiry.expire_batch(now=later)] * PARALLEL)

    assert sum(counts) == 1
    assert [message["event"] for message in heard] == ["faulted"]


@pytest.mark.spec("SIG-25", "SUB-42")
def test_a_reply_that_loses_the_generation_announces_nothing(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with listening(request_id) as heard, behind_a_lock_on(request_id) as line:
        replies = [line.join(lambda: committed_horde.reply(generation_id)) for _ in range(2)]

    assert codes([reply.result() for reply in replies]) == ["200", "DuplicateGen"]
    assert [message["event"] for message in heard] == ["generation", "done"]


@pytest.mark.spec("SIG-25", "SUB-42")
def test_a_reply_that_loses_against_a_fault_announces_nothing(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with listening(request_id) as heard, behind_a_lock_on(request_id) as line:
        line.join(lambda: committed_horde.fault(generation_id))
        reply = line.join(lambda: committed_horde.reply(generation_id))

    assert codes([reply.result()]) == ["AbortedGen"]
    assert heard == []
