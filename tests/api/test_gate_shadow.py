"""How text jobs end that are longer than their worker finishes in time is counted once each; so are lapsed leases."""

from collections.abc import Callable
from typing import Any

import pytest

from hordechat.infra import clock
from requests_app.services import faults
from tests.horde import MODEL, Horde, Person, make_person, one_value
from tests.tries import counted, counts_of, lapse

LARGE: dict[str, Any] = {"max_length": 4096, "max_context_length": 8192}


def outcomes() -> dict[tuple[str, ...], float]:
    """Return how jobs ended so far, by their owner's trust, their size and their end."""
    return counts_of("horde_text_gate_shadow_outcomes", "worker_trusted", "size_bucket", "outcome")


def seconds(*, size: str = "1025-2048", trusted: str = "true") -> tuple[float, float]:
    """Return how many service times were recorded of a size, and their sum."""
    name, labels = "horde_text_gate_shadow_service_seconds", {"worker_trusted": trusted, "size_bucket": size}
    return counted(f"{name}_count", **labels), counted(f"{name}_sum", **labels)


def take(horde: Horde, *, length: int = 1201, owner: Person | None = None, speed: float | None = None) -> str:
    """Bring a text request of a length into the hands of a worker of a speed; return its generation."""
    api_key = (owner or horde.owner).api_key
    worker: dict[str, Any] = {"name": f"worker of {api_key}", "api_key": api_key, **LARGE}
    horde.pop_text(**worker)
    one_value("UPDATE workers SET speed = %s WHERE name = %s RETURNING 1", [speed, worker["name"]])
    horde.queued_text(params={"max_length": length, "max_context_length": 8192}, models=[MODEL])
    generation_id: str = horde.pop_text(**worker)[1]["id"]
    assert generation_id is not None
    return generation_id


def complete(horde: Horde, generation_id: str) -> None:
    assert horde.reply_text(generation_id)[0] == 200


def give_back(horde: Horde, generation_id: str) -> None:
    assert horde.reply_text(generation_id, "", state="faulted")[0] == 200


def abort(horde: Horde, generation_id: str) -> None:
    lapse(generation_id)
    assert faults.abort_lapsed(now=clock.now()) == 1


ENDS: dict[str, Callable[[Horde, str], None]] = {"completed": complete, "faulted": give_back, "aborted": abort}


class TestOutcomes:
    """Completed, faulted or aborted: the first end of an over-capacity text job and nothing else."""

    @pytest.mark.spec("SPD-18", "SPD-19", "SPD-20", "SPD-21", "SPD-27")
    @pytest.mark.parametrize("outcome", ENDS)
    @pytest.mark.parametrize(
        ("length", "speed", "size"),
        [
            (512, 1.0, "<=512"),
            (513, 1.0, "513-1024"),
            (1201, None, "1025-2048"),
            (2049, 17.0, "2049-4096"),
        ],
    )
    def test_have_their_size_and_how_they_ended(
        self, horde: Horde, outcome: str, length: int, speed: float | None, size: str
    ) -> None:
        generation_id = take(horde, length=length, speed=speed)
        before = outcomes()

        ENDS[outcome](horde, generation_id)

        label = ("true", size, outcome)
        assert outcomes() == before | {label: before.get(label, 0) + 1}

    @pytest.mark.spec("SPD-18", "SPD-27")
    @pytest.mark.parametrize("outcome", ENDS)
    def test_have_false_for_an_owner_who_is_not_trusted(self, horde: Horde, outcome: str) -> None:
        one_value("UPDATE users SET is_trusted = false WHERE id = %s RETURNING 1", [horde.owner.id])
        generation_id = take(horde)
        before = outcomes()

        ENDS[outcome](horde, generation_id)

        label = ("false", "1025-2048", outcome)
        assert outcomes() == before | {label: before.get(label, 0) + 1}

    @pytest.mark.spec("SPD-18")
    @pytest.mark.parametrize("outcome", ENDS)
    def test_leave_out_jobs_within_the_capacity_and_chat_jobs(self, horde: Horde, outcome: str) -> None:
        within = take(horde, length=1200)
        before = outcomes()
        ENDS[outcome](horde, within)
        _, chat = horde.in_flight(max_tokens=1024)
        if outcome == "completed":
            assert horde.reply(chat)[0] == 200
        elif outcome == "faulted":
            assert horde.fault(chat)[0] == 200
        else:
            abort(horde, chat)

        assert outcomes() == before

    @pytest.mark.spec("SPD-27")
    @pytest.mark.parametrize("outcome", ENDS)
    def test_are_one_a_job_at_most(self, horde: Horde, outcome: str) -> None:
        generation_id = take(horde)
        ENDS[outcome](horde, generation_id)
        before = outcomes(), seconds()

        expected = "DuplicateGen" if outcome == "completed" else "AbortedGen"
        assert horde.reply_text(generation_id)[1]["rc"] == expected
        assert horde.reply_text(generation_id, "", state="faulted")[1]["rc"] == expected
        lapse(generation_id)
        assert faults.abort_lapsed(now=clock.now()) == 0

        assert (outcomes(), seconds()) == before

    @pytest.mark.spec("SPD-27")
    def test_are_none_of_a_refused_submit_or_a_cancel(self, horde: Horde) -> None:
        generation_id = take(horde)
        request_id = one_value("SELECT request_id FROM processing_gens")
        before = outcomes(), seconds()

        assert horde.reply(generation_id)[1]["rc"] == "ChatSubmitInvalid"
        assert horde.reply(generation_id, api_key="nobody")[1]["rc"] == "InvalidAPIKey"
        assert horde.reply_text(generation_id, gen_metadata="x")[1]["rc"] == "BadRequest"
        assert horde.call("DELETE", f"generate/text/status/{request_id}")[0] == 200
        assert (outcomes(), seconds()) == before

        complete(horde, generation_id)

        label = ("true", "1025-2048", "completed")
        assert outcomes() == before[0] | {label: before[0].get(label, 0) + 1}


class TestServiceSeconds:
    """From pop to submit, of what was completed."""

    @pytest.mark.spec("SPD-23")
    def test_are_recorded_of_a_completed_job(self, horde: Horde) -> None:
        generation_id = take(horde)
        one_value("UPDATE processing_gens SET created = created - interval '75 s' RETURNING 1")
        others = seconds(trusted="false"), seconds(size="513-1024")
        count, total = seconds()

        complete(horde, generation_id)

        assert seconds()[0] == count + 1
        assert 75 <= seconds()[1] - total < 75 + 60
        assert (seconds(trusted="false"), seconds(size="513-1024")) == others

    @pytest.mark.spec("SPD-23")
    def test_have_the_size_and_the_owners_trust(self, horde: Horde) -> None:
        one_value("UPDATE users SET is_trusted = false WHERE id = %s RETURNING 1", [horde.owner.id])
        generation_id = take(horde, length=600, speed=1.0)
        before = seconds(size="513-1024", trusted="false")[0]

        complete(horde, generation_id)

        assert seconds(size="513-1024", trusted="false")[0] == before + 1

    @pytest.mark.spec("SPD-23")
    @pytest.mark.parametrize("outcome", ["faulted", "aborted"])
    def test_are_not_recorded_of_a_job_that_was_given_up(self, horde: Horde, outcome: str) -> None:
        generation_id = take(horde)
        before = seconds()

        ENDS[outcome](horde, generation_id)

        assert seconds() == before


def stale_aborts() -> dict[tuple[str, ...], float]:
    """Return the aborts so far, by their owner's trust and whether they were of chat jobs."""
    return counts_of("horde_text_stale_aborts", "worker_trusted", "chat")


class TestStaleAborts:
    """Jobs aborted because their lease lapsed, text and chat, by the trust of their worker's owner."""

    @pytest.mark.spec("LSE-23")
    def test_are_counted_by_trust_and_family(self, horde: Horde) -> None:
        stranger = make_person("stranger")
        take(horde)
        take(horde)
        take(horde, owner=stranger)
        for owner, times in ((horde.owner, 3), (stranger, 4)):
            for _ in range(times):
                worker = {"name": f"chat worker of {owner.id}", "api_key": owner.api_key}
                horde.pop(**worker)
                horde.submit()
                assert horde.pop(**worker)[1]["id"] is not None
        before = stale_aborts()
        lapse()

        assert faults.abort_lapsed(now=clock.now()) == 10
        assert faults.abort_lapsed(now=clock.now()) == 0

        expected = {("true", "false"): 2, ("false", "false"): 1, ("true", "true"): 3, ("false", "true"): 4}
        assert {label: stale_aborts()[label] - before.get(label, 0) for label in expected} == expected
        assert stale_aborts().keys() == before.keys() | expected.keys()

    @pytest.mark.spec("LSE-23")
    def test_are_not_what_a_worker_gave_back_or_submitted(self, horde: Horde) -> None:
        _, given_back = horde.in_flight()
        horde.fault(given_back)
        stored = horde.pop()[1]["id"]
        horde.reply(stored)
        before = stale_aborts()
        lapse()

        assert faults.abort_lapsed(now=clock.now()) == 0

        assert stale_aborts() == before
