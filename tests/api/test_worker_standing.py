"""What a worker's conduct leads to: rewards for being online, maintenance, pause and fake jobs, and what it is told."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing_app.selectors import ledger
from hordechat.infra import clock
from requests_app.services import expiry, faults
from tests.horde import MODEL, Horde, count_rows, make_person, one_value
from tests.tries import counted, counters, counts_of


def age(seconds: float) -> None:
    """Let the worker's last check-in be as long ago."""
    one_value("UPDATE workers SET last_check_in = last_check_in - make_interval(secs => %s) RETURNING 1", [seconds])


def uptime() -> tuple[int, int]:
    return one_value("SELECT uptime_seconds FROM workers"), one_value("SELECT rewarded_uptime_seconds FROM workers")


def escrow(person_id: int) -> Decimal:
    return Decimal(one_value("SELECT posted_kudos FROM accounts WHERE user_id = %s AND kind = 'escrow'", [person_id]))


class TestTimeOnline:
    """It is counted from check-in to check-in, and rewarded every ten minutes."""

    def test_grows_with_every_check_in_outside_of_the_window(self, horde: Horde) -> None:
        horde.pop()
        for seconds in (29, 100, 250):
            age(seconds)
            horde.pop()

        assert uptime()[0] in range(350, 382)
        assert uptime()[1] == 0

    def test_is_rewarded_when_more_than_ten_minutes_have_come_together(self, horde: Horde) -> None:
        horde.pop()
        for _ in range(2):
            age(295)
            horde.pop()
        assert one_value("SELECT count(*) FROM transfers WHERE kind = 'uptime'") == 0
        before = horde.kudos(horde.owner)
        age(20)
        horde.pop()
        age(31)

        with CaptureQueriesContext(connection) as captured:
            horde.pop()

        # An unknown model: half of 25 + 15 x 2048 / 1024.
        assert horde.kudos(horde.owner) - before == Decimal("27.50")
        assert uptime()[0] == uptime()[1]
        assert len(captured) == 7
        assert ledger.reconcile().is_sound

    def test_of_an_owner_who_is_not_trusted_goes_to_escrow(self, horde: Horde) -> None:
        stranger = make_person("stranger")
        horde.pop(api_key=stranger.api_key)
        one_value("UPDATE workers SET uptime_seconds = 590 RETURNING 1")
        age(31)

        horde.pop(api_key=stranger.api_key)

        assert (escrow(stranger.id), horde.kudos(stranger)) == (Decimal("27.50"), Decimal(0))

    @pytest.mark.parametrize("cause", ["away", "paused", "maintenance"])
    def test_begins_anew_after_a_time_the_worker_did_not_serve(self, horde: Horde, cause: str) -> None:
        horde.pop()
        one_value("UPDATE workers SET uptime_seconds = 500 RETURNING 1")
        if cause == "away":
            age(301)
        else:
            one_value(f"UPDATE workers SET {cause if cause == 'maintenance' else 'paused'} = true RETURNING 1")
            age(200)

        horde.pop()

        assert uptime() == (500, 500)


class TestJobsGivenUp:
    """More than twenty within an hour put a worker into maintenance."""

    def give_up(self, horde: Horde, count: int) -> None:
        for _ in range(count):
            horde.submit_text()
            horde.reply_text(horde.pop_text()[1]["id"], "x", state="faulted")
            horde.call("DELETE", f"generate/text/status/{one_value('SELECT id FROM waiting_prompts LIMIT 1')}")
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM processing_gens")
                cursor.execute("DELETE FROM queue_rows")
                cursor.execute("DELETE FROM waiting_prompts")

    def standing(self) -> tuple[object, ...]:
        columns = "aborted_jobs, uncompleted_jobs, maintenance, suspicions"
        return tuple(one_value(f"SELECT {column} FROM workers") for column in columns.split(", "))

    def test_the_twenty_first_is_one_too_many(self, horde: Horde) -> None:
        self.give_up(horde, 20)
        assert self.standing() == (20, 20, False, 0)

        self.give_up(horde, 1)

        assert self.standing() == (0, 21, True, 1)
        horde.submit_text()
        status, body = horde.pop_text()
        assert (status, body["rc"]) == (403, "WorkerMaintenance")
        assert "gave up more than 20 jobs" in body["message"]

    def test_an_hour_later_the_count_begins_anew(self, horde: Horde) -> None:
        self.give_up(horde, 20)
        one_value("UPDATE workers SET aborts_since = now() - interval '61 minutes' RETURNING 1")

        self.give_up(horde, 1)

        assert self.standing() == (1, 21, False, 0)

    def test_lapsed_leases_count_too(self, horde: Horde) -> None:
        horde.submit_text(params={"n": 20})
        horde.submit_text()
        horde.pop_text(amount=20)
        horde.pop_text()

        assert faults.abort_lapsed(now=clock.now() + timedelta(seconds=200)) == 21

        assert self.standing() == (0, 21, True, 1)


class TestTooFast:
    """A reply nobody can generate so fast is suspicious; five of them pause the worker of an owner nobody trusts."""

    @pytest.mark.parametrize(("is_trusted", "is_paused"), [(False, True), (True, False)])
    def test_five_suspicious_replies_pause(self, horde: Horde, is_trusted: bool, is_paused: bool) -> None:
        owner = make_person("quick", is_trusted=is_trusted)

        for _ in range(5):
            horde.submit_text(params={"max_length": 512})
            generation_id = horde.pop_text(api_key=owner.api_key)[1]["id"]
            body = {"id": generation_id, "generation": "x" * 2000}
            assert horde.call("POST", "generate/text/submit", body, api_key=owner.api_key)[0] == 200

        assert one_value("SELECT suspicions FROM workers") == 5
        assert one_value("SELECT paused FROM workers") is is_paused


class TestAPausedWorker:
    """It is handed fakes: payloads of requests that go on waiting, whose replies are neither kept nor paid."""

    def pause(self, horde: Horde) -> None:
        horde.pop_text()
        one_value("UPDATE workers SET paused = true RETURNING 1")

    @pytest.mark.spec("SPD-13")
    def test_gets_the_payload_and_leaves_the_slot(self, horde: Horde, caplog: pytest.LogCaptureFixture) -> None:
        self.pause(horde)
        request_id = horde.queued_text(params={"max_length": 2000}, models=[MODEL])

        with caplog.at_level("INFO"):
            status, body = horde.pop_text(max_length=4096)

        assert (status, body["payload"]["prompt"], len(body["ids"])) == (200, "Once upon a time", 1)
        shown = horde.text_status(request_id)[1]
        assert (shown["waiting"], shown["processing"]) == (1, 0)
        assert one_value("SELECT (fake, over_capacity_at_assignment)::text FROM processing_gens") == "(t,f)"
        assert [record for record in caplog.records if "over capacity" in record.getMessage()] == []

    def test_is_answered_a_reward_and_paid_nothing(self, horde: Horde) -> None:
        self.pause(horde)
        request_id = horde.queued_text(models=[MODEL])
        generation_id = horde.pop_text()[1]["id"]
        before = count_rows("transfers")

        status, body = horde.reply_text(generation_id)

        assert (status, body["reward"] > 0) == (200, True)
        assert count_rows("transfers") == before
        assert horde.text_status(request_id)[1]["generations"] == []
        assert horde.reply_text(generation_id)[1]["rc"] == "DuplicateGen"
        assert one_value("SELECT requests_fulfilled FROM workers") == 0

    def test_is_counted_apart_and_never_as_an_empty_reply(self, horde: Horde) -> None:
        def counts() -> list[float]:
            replies = [counted("horde_replies_total", outcome=outcome) for outcome in ("fake", "completed")]
            return [*replies, *counts_of("horde_text_empty_generations", "model").values()]

        self.pause(horde)
        horde.queued_text(models=[MODEL])
        generation_id = horde.pop_text()[1]["id"]
        fakes, *others = counts()

        assert horde.reply_text(generation_id, "")[0] == 200

        assert counts() == [fakes + 1, *others]

    def test_stays_paused_and_is_counted_when_it_gives_one_up(self, horde: Horde) -> None:
        self.pause(horde)
        request_id = horde.queued_text(models=[MODEL])

        assert horde.reply_text(horde.pop_text()[1]["id"], "", state="faulted") == (200, {"reward": 0})

        assert one_value("SELECT paused FROM workers") is True
        assert counters("text worker") == (1, 1, 0)
        shown = horde.text_status(request_id)[1]
        assert (shown["waiting"], shown["restarted"]) == (1, 0)
        assert one_value("SELECT faulted_jobs FROM waiting_prompts") == 0

    def test_never_sees_the_same_request_again(self, horde: Horde) -> None:
        self.pause(horde)
        horde.queued_text()

        assert horde.pop_text()[1]["id"] is not None
        assert horde.pop_text()[1]["id"] is None
        assert horde.pop_text(name="another")[1]["id"] is not None, "it waits for everybody else"

    def test_serves_its_own_owner_for_real(self, horde: Horde) -> None:
        self.pause(horde)
        horde.submit_text(api_key=horde.owner.api_key)

        horde.pop_text()

        assert one_value("SELECT fake FROM processing_gens") is False

    def test_is_paused_for_chat_as_well(self, horde: Horde) -> None:
        horde.pop()
        one_value("UPDATE workers SET paused = true RETURNING 1")
        request_id = horde.submit()[1]["id"]

        body = horde.pop()[1]

        assert (body["chat"], horde.status(request_id)[1]["waiting"]) == (True, 1)
        assert horde.reply(body["id"])[0] == 200
        assert horde.status(request_id)[1]["generations"] == []

    @pytest.mark.parametrize("family", ["chat", "text"])
    def test_is_none_of_those_that_could_serve_now(self, horde: Horde, family: str) -> None:
        horde.pop(chat_jobs=family == "chat", prompt_jobs=family == "text")
        submit, status = (horde.submit, horde.status) if family == "chat" else (horde.submit_text, horde.text_status)
        warning = "No online worker can serve this request now."
        assert warning not in submit()[1].get("message", "")
        one_value("UPDATE workers SET paused = true RETURNING 1")

        body = submit()[1]

        assert warning in body["message"]
        assert status(body["id"])[1]["is_possible"] is False

    def test_a_fake_goes_with_its_request(self, horde: Horde) -> None:
        self.pause(horde)
        horde.queued_text()
        horde.pop_text()

        assert expiry.expire_batch(now=clock.now() + timedelta(minutes=21)) == 1
        assert count_rows("processing_gens") == {"processing_gens": 0}


class TestMessages:
    """What operators tell workers comes with every pop, until it expires."""

    def tell(self, message: str, *, worker_id: object = None, hours: float = 1) -> str:
        message_id = str(uuid4())
        one_value(
            "INSERT INTO worker_messages (id, worker_id, message, origin, expiry)"
            " VALUES (%s, %s, %s, 'us', %s) RETURNING 1",
            [message_id, worker_id, message, clock.now() + timedelta(hours=hours)],
        )
        return message_id

    def test_are_for_one_worker_or_for_all(self, horde: Horde) -> None:
        horde.pop()
        horde.pop(name="worker two")
        own = one_value("SELECT id FROM workers WHERE name = 'worker one'")
        to_all, to_one = self.tell("Hello all"), self.tell("Hello one", worker_id=own)
        self.tell("Too late", hours=-1)

        with CaptureQueriesContext(connection) as captured:
            told = horde.pop()[1]["messages"]

        assert [(each["id"], each["message"], each["origin"]) for each in told] == [
            (to_all, "Hello all", "us"),
            (to_one, "Hello one", "us"),
        ]
        assert told[0]["expiry"].endswith(" GMT")
        assert len(captured) == 2
        assert [each["id"] for each in horde.pop(name="worker two")[1]["messages"]] == [to_all]

    def test_come_with_a_job_too(self, horde: Horde) -> None:
        horde.queued()
        self.tell("Hello")
        body: dict[str, Any] = horde.pop()[1]

        assert (body["chat"], [each["message"] for each in body["messages"]]) == (True, ["Hello"])

    def test_are_at_most_fifty(self, horde: Horde) -> None:
        for number in range(60):
            self.tell(f"number {number}")

        assert len(horde.pop()[1]["messages"]) == 50
