"""Completion signals go out after the commit, once, without text; without Redis everything else goes on."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis as client_library
from django.conf import settings

from hordechat.infra import clock, redis
from hordechat.local import valkey
from hordechat.local.valkey import Valkey
from requests_app.services import expiry, faults, site_modes
from tests.horde import Horde, count_rows, one_value
from tests.races import slow_commits
from tests.signals import listening, looking_when_woken
from tests.tries import counted, lapse


@pytest.mark.spec("SIG-01", "SIG-03", "SIG-04", "SIG-05", "SIG-09", "SIG-11")
@pytest.mark.parametrize("database", [0, 7, 15])
def test_announces_a_generation_and_then_the_end(committed_horde: Horde, database: int) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with listening(request_id, database=database) as heard:
        committed_horde.reply(generation_id)
        committed_horde.reply(generation_id)

    assert heard == [
        {"id": request_id, "event": "generation", "generations": 1},
        {"id": request_id, "event": "done", "generations": 1},
    ]


@pytest.mark.spec("SIG-05", "SIG-11")
def test_announces_the_end_with_the_last_generation_alone(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    one_value("UPDATE waiting_prompts SET jobs = 2, n = 2 RETURNING 1")
    ids = [committed_horde.pop()[1]["id"] for _ in range(2)]

    with listening(request_id) as heard:
        for generation_id in ids:
            assert committed_horde.reply(generation_id)[0] == 200

    assert [(message["event"], message["generations"]) for message in heard] == [
        ("generation", 1),
        ("generation", 2),
        ("done", 2),
    ]


@pytest.mark.spec("SIG-05")
@pytest.mark.parametrize(
    ("act", "events"),
    [
        pytest.param(lambda horde, _, jobs: horde.reply(jobs[1]), [("generation", 2)], id="another reply"),
        pytest.param(
            lambda horde, request_id, jobs: [horde.cancel(request_id), *map(horde.reply, jobs)],
            [("cancelled", 1), ("generation", 2), ("generation", 3), ("done", 3)],
            id="a cancel and all replies",
        ),
        pytest.param(lambda horde, _, jobs: horde.fault(jobs[1]), [("faulted", 1)], id="one fault too many"),
        pytest.param(
            lambda *_: expiry.expire_batch(now=clock.now() + timedelta(hours=1)), [("faulted", 1)], id="the expiry"
        ),
    ],
)
def test_counts_what_is_stored_and_not_what_waits_or_is_in_flight(
    committed_horde: Horde, act: Callable[[Horde, str, list[str]], object], events: list[tuple[str, int]]
) -> None:
    request_id = committed_horde.queued()
    # No chat request asks for several today.
    one_value("UPDATE waiting_prompts SET jobs = 4, n = 4, faulted_jobs = 2 RETURNING 1")
    jobs = [committed_horde.pop()[1]["id"] for _ in range(3)]
    committed_horde.reply(jobs[0])

    with listening(request_id) as heard:
        act(committed_horde, request_id, jobs)

    assert [(message["event"], message["generations"]) for message in heard] == events


@pytest.mark.spec("SIG-10")
def test_announces_a_generation_after_its_commit(committed_horde: Horde) -> None:
    request_id, generation_id = committed_horde.in_flight()

    with (
        slow_commits("processing_gens"),
        looking_when_woken(request_id, "SELECT generation FROM processing_gens") as heard,
    ):
        committed_horde.reply(generation_id)

    assert heard == [("generation", "Hello yourself"), ("done", "Hello yourself")]


@pytest.mark.spec("SIG-12")
def test_announces_a_cancel_once(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()

    with listening(request_id) as heard:
        committed_horde.cancel(request_id)
        committed_horde.cancel(request_id)

    assert heard == [{"id": request_id, "event": "cancelled", "generations": 0}]


@pytest.mark.spec("SIG-15", "SIG-07", "SIG-17")
def test_announces_an_expiry_once_the_request_is_gone(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    later = clock.now() + timedelta(hours=1)

    with listening(request_id) as heard:
        assert expiry.expire_batch(now=later) == 1
        assert expiry.expire_batch(now=later) == 0

    assert heard == [{"id": request_id, "event": "faulted", "generations": 0}]
    assert committed_horde.status(request_id)[0] == 404


@pytest.mark.spec("SIG-18")
def test_announces_an_expiry_after_the_commit_of_its_deletion(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()

    with (
        slow_commits("waiting_prompts"),
        looking_when_woken(request_id, "SELECT count(*) FROM waiting_prompts") as heard,
    ):
        expiry.expire_batch(now=clock.now() + timedelta(hours=1))

    assert heard == [("faulted", 0)]


@pytest.mark.spec("SIG-06", "SIG-19")
def test_carries_the_fault_details_of_an_expired_request(committed_horde: Horde) -> None:
    request_id = committed_horde.queued()
    one_value("UPDATE waiting_prompts SET chat_fault_reason = 'Why.', chat_fault_rc = 'ChatWorkerFault' RETURNING 1")

    with listening(request_id) as heard:
        expiry.expire_batch(now=clock.now() + timedelta(hours=1))

    assert heard[0] | {"fault_reason": "Why.", "fault_rc": "ChatWorkerFault"} == heard[0]


def answer(horde: Horde) -> str:
    request_id, generation_id = horde.in_flight()
    horde.reply(generation_id)
    return request_id


def cancel_waiting(horde: Horde) -> str:
    request_id = horde.queued()
    horde.cancel(request_id)
    return request_id


def cancel_in_flight(horde: Horde) -> str:
    request_id, _ = horde.in_flight()
    horde.cancel(request_id)
    return request_id


def fault_request(horde: Horde) -> str:
    request_id = horde.queued()
    one_value("UPDATE waiting_prompts SET faulted = true RETURNING 1")
    return request_id


@pytest.mark.spec("SIG-27")
@pytest.mark.parametrize(
    ("prepare", "events"),
    [
        pytest.param(answer, [], id="answered"),
        pytest.param(cancel_waiting, [], id="cancelled with nothing in flight"),
        pytest.param(fault_request, [], id="faulted earlier"),
        pytest.param(lambda horde: horde.queued(), ["faulted"], id="waiting"),
        pytest.param(lambda horde: horde.in_flight()[0], ["faulted"], id="in flight"),
        pytest.param(cancel_in_flight, ["faulted"], id="cancelled while in flight"),
    ],
)
def test_announces_the_expiry_of_a_request_that_was_not_done(
    committed_horde: Horde, prepare: Callable[[Horde], str], events: list[str]
) -> None:
    request_id = prepare(committed_horde)

    with listening(request_id) as heard:
        assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 1

    assert [message["event"] for message in heard] == events
    assert count_rows("waiting_prompts") == {"waiting_prompts": 0}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Valkey]:
    """Publish on a Redis of the test's own, which it may break."""
    with valkey.running(tmp_path / "valkey") as running:
        monkeypatch.setattr(settings, "HORDE", settings.HORDE.model_copy(update={"redis_url": running.url}))
        redis._client.cache_clear()
        yield running
    redis._client.cache_clear()


@pytest.mark.spec("SIG-02")
def test_publishes_from_logical_database_7(committed_horde: Horde, server: Valkey) -> None:
    _, generation_id = committed_horde.in_flight()

    committed_horde.reply(generation_id)

    with client_library.Redis.from_url(server.url) as client:
        publishers = [each for each in client.client_list() if each["cmd"] == "publish"]
    assert {each["db"] for each in publishers} == {"7"}


Prepared = tuple[str, Callable[[], bool]]
"""A request, and what makes something of it that is worth a signal; it returns whether that was done."""


def a_reply(horde: Horde) -> Prepared:
    request_id, generation_id = horde.in_flight()
    return request_id, lambda: horde.reply(generation_id)[0] == 200


def a_cancel(horde: Horde) -> Prepared:
    request_id = horde.queued()
    return request_id, lambda: horde.cancel(request_id)[0] == 200


def the_third_fault(horde: Horde) -> Prepared:
    request_id, generation_id = horde.in_flight()
    one_value("UPDATE waiting_prompts SET faulted_jobs = 2 RETURNING 1")
    return request_id, lambda: horde.fault(generation_id)[0] == 200


def the_third_lapsed_lease(horde: Horde) -> Prepared:
    request_id, _ = horde.in_flight()
    one_value("UPDATE waiting_prompts SET faulted_jobs = 2 RETURNING 1")
    lapse()
    return request_id, lambda: faults.abort_lapsed(now=clock.now()) == 1


def a_cancel_for_maintenance(horde: Horde) -> Prepared:
    request_id = horde.queued()
    return request_id, lambda: site_modes.cancel_for_maintenance(now=clock.now(), tell=lambda _: None) == 1


def an_expiry(horde: Horde) -> Prepared:
    later = clock.now() + timedelta(hours=1)
    return horde.queued(), lambda: expiry.expire_batch(now=later) == 1


@pytest.mark.spec("SIG-21")
@pytest.mark.parametrize(
    ("prepare", "shown"),
    [
        (a_reply, {"done": True, "finished": 1, "faulted": False}),
        (a_cancel, {"done": True, "waiting": 0, "faulted": False}),
        (the_third_fault, {"done": True, "faulted": True, "restarted": 1}),
        (the_third_lapsed_lease, {"done": True, "faulted": True, "restarted": 1}),
        (a_cancel_for_maintenance, {"done": True, "waiting": 0, "faulted": False}),
        (an_expiry, {"rc": "RequestNotFound"}),
    ],
)
def test_goes_on_without_redis_and_logs_that_nothing_was_published(
    committed_horde: Horde,
    server: Valkey,
    caplog: pytest.LogCaptureFixture,
    prepare: Callable[[Horde], Prepared],
    shown: dict[str, Any],
) -> None:
    request_id, act = prepare(committed_horde)
    before = counted("horde_best_effort_failures_total", operation="completion signal")
    server.stop()

    assert act()

    body = committed_horde.status(request_id)[1]
    assert body | shown == body
    lines = [record.getMessage() for record in caplog.records if record.name == redis.__name__]
    assert lines == ["completion signal failed: Redis ConnectionError"]
    assert counted("horde_best_effort_failures_total", operation="completion signal") > before


@pytest.mark.spec("SIG-24", "SIG-28")
def test_deletes_a_text_request_beside_a_chat_request_without_a_word(committed_horde: Horde) -> None:
    text_id, chat_id = committed_horde.queued_text(), committed_horde.queued()

    with listening(text_id) as of_text, listening(chat_id) as of_chat:
        assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 2

    assert [message["event"] for message in of_chat] == ["faulted"]
    assert of_text == []
    assert count_rows("waiting_prompts", "queue_rows") == {"waiting_prompts": 0, "queue_rows": 0}


@pytest.mark.spec("SIG-28")
@pytest.mark.parametrize("refused", [0, 1, 2])
def test_announces_other_requests_though_one_cannot_be_published(
    committed_horde: Horde, server: Valkey, caplog: pytest.LogCaptureFixture, refused: int
) -> None:
    committed_horde.pop()
    ids = [committed_horde.submit()[1]["id"] for _ in range(3)]
    told = [request_id for number, request_id in enumerate(ids) if number != refused]
    with client_library.Redis.from_url(server.url) as client:
        client.acl_setuser(
            "default",
            enabled=True,
            nopass=True,
            categories=["+@all"],
            keys=["*"],
            reset_channels=True,
            channels=[f"horde:chat:{request_id}" for request_id in told],
        )

    with listening(told[0]) as of_first, listening(told[1]) as of_second:
        assert expiry.expire_batch(now=clock.now() + timedelta(hours=1)) == 3

    assert [message["event"] for message in (*of_first, *of_second)] == ["faulted", "faulted"]
    assert count_rows("waiting_prompts") == {"waiting_prompts": 0}
    lines = [record.getMessage() for record in caplog.records if record.name == redis.__name__]
    assert lines == ["completion signal failed: Redis NoPermissionError"]
