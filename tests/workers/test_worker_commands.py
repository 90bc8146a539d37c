"""Operators steer workers with `manage.py worker` and tell them things with `manage.py worker_message`."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from hordechat.infra import clock
from tests.horde import Horde
from workers_app.models import Worker

pytestmark = pytest.mark.django_db


def run(command: str, *arguments: str) -> str:
    output = io.StringIO()
    call_command(command, *arguments, stdout=output)
    return output.getvalue()


def shown(*arguments: str) -> dict[str, Any]:
    output = run("worker", *arguments, "--json")
    assert output.count("\n") == 1
    body: dict[str, Any] = json.loads(output)
    return body


class TestWorker:
    """Maintenance and pauses begin and end, and how the worker stands is shown."""

    def test_maintenance_refuses_pops_with_the_message_until_it_ends(self, horde: Horde) -> None:
        horde.pop()
        horde.queued()

        for _ in range(2):
            facts = shown("worker one", "--maintenance", "on", "--message", "Cool it down.")
            assert (facts["maintenance"], facts["maintenance_message"]) == (True, "Cool it down.")
        status, body = horde.pop()
        assert (status, body["rc"], body["message"]) == (403, "WorkerMaintenance", "Cool it down.")

        for _ in range(2):
            facts = shown("worker one", "--maintenance", "off")
            assert (facts["maintenance"], facts["maintenance_message"]) == (False, None)
        assert horde.pop()[1]["id"]

    def test_maintenance_without_a_message_has_the_usual_words(self, horde: Horde) -> None:
        horde.pop()
        run("worker", "worker one", "--maintenance", "on", "--message", "Once")
        run("worker", "worker one", "--maintenance", "on")

        assert horde.pop()[1]["message"] == "The owner of this worker has put it into maintenance."

    def test_the_end_of_a_pause_forgets_suspicions(self, horde: Horde) -> None:
        horde.pop()
        assert shown("worker one", "--paused", "on")["paused"] is True
        Worker.objects.update(suspicions=5)

        facts = shown("worker one", "--paused", "off")

        assert (facts["paused"], facts["suspicions"]) == (False, 0)

    def test_shows_how_it_stands_and_changes_nothing(self, horde: Horde) -> None:
        horde.pop()
        before = Worker.objects.values().get()

        lines = dict(line.split(maxsplit=1) for line in run("worker", "worker one").splitlines())

        assert lines["name"] == "worker one"
        assert lines["paused"] == "no"
        assert Worker.objects.values().get() == before

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["nobody"], "There is no worker named 'nobody'."),
            (["nobody", "--maintenance", "on"], "There is no worker named 'nobody'."),
            (["nobody", "--paused", "off"], "There is no worker named 'nobody'."),
            (["worker one", "--message", "words"], "--message goes with --maintenance on."),
            (["worker one", "--maintenance", "on", "--message", "x" * 301], "1 to 300 characters"),
            (["worker one", "--maintenance", "on", "--message", ""], "1 to 300 characters"),
            (["worker one", "--maintenance", "maybe"], "invalid choice"),
        ],
    )
    def test_refuses_with_a_sentence(self, horde: Horde, arguments: list[str], complaint: str) -> None:
        horde.pop()

        with pytest.raises(CommandError) as refusal:
            run("worker", *arguments)

        assert complaint in str(refusal.value)
        assert not Worker.objects.filter(maintenance=True).exists()


class TestMessages:
    """What is sent comes with pops until it is removed or has ended."""

    def told(self, horde: Horde, name: str = "worker one") -> list[tuple[str, str]]:
        return [(each["origin"], each["message"]) for each in horde.pop(name=name)[1].get("messages", [])]

    def test_reach_one_worker_or_all_until_removed(self, horde: Horde) -> None:
        horde.pop()
        horde.pop(name="worker two")
        to_one = run("worker_message", "send", "Update soon", "--worker", "worker one", "--origin", "us").strip()
        to_all = run("worker_message", "send", "Good evening", "--hours", "720").strip()

        assert self.told(horde) == [("us", "Update soon"), ("operators", "Good evening")]
        assert self.told(horde, "worker two") == [("operators", "Good evening")]
        listed = json.loads(run("worker_message", "list", "--json"))["messages"]
        assert [(each["id"], each["worker"]) for each in listed] == [(to_one, "worker one"), (to_all, None)]

        assert run("worker_message", "remove", to_one) == "It is told no more.\n"
        assert run("worker_message", "remove", to_one).startswith("There is no such message;")
        assert self.told(horde) == [("operators", "Good evening")]

    def test_of_the_longest_reach_their_worker_whole(self, horde: Horde) -> None:
        longest = "\U0001f9ed" * 10_240
        horde.pop()

        run("worker_message", "send", longest)

        assert self.told(horde) == [("operators", longest)]

    def test_end_by_themselves(self, horde: Horde) -> None:
        horde.pop()
        run("worker_message", "send", "For an hour", "--hours", "1")
        assert run("worker_message", "list").splitlines()[0] == "1 told."

        with time_machine.travel(clock.now() + timedelta(hours=1, seconds=1), tick=False):
            assert run("worker_message", "list") == "0 told.\n"

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["send", "words", "--worker", "nobody"], "There is no worker named 'nobody'."),
            (["send", ""], "a message holds 1 to 10240 characters"),
            (["send", "x" * 10_241], "1 to 10240 characters"),
            (["send", "words", "--origin", "x" * 256], "an origin holds 1 to 255 characters"),
            (["send", "words", "--hours", "0"], "'0' is not a number of hours from 1 to 720"),
            (["send", "words", "--hours", "9" * 30], "is not a number of hours"),
            (["remove", "17"], "invalid UUID value"),
            ([], "ACTION"),
        ],
    )
    def test_refuses_with_a_sentence(self, arguments: list[str], complaint: str) -> None:
        with pytest.raises(CommandError) as refusal:
            run("worker_message", *arguments)

        assert complaint in str(refusal.value)
        assert run("worker_message", "list") == "0 told.\n"
