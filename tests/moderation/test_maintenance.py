"""An operator switches the site's maintenance, as often as they like."""

import io
import json
from contextlib import ExitStack
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from billing_app.selectors import ledger
from hordechat.infra import clock
from requests_app.models import SiteMode
from requests_app.selectors import site_modes as modes
from requests_app.services import cancel, site_modes
from tests.horde import MODEL, Answer, Horde, count_rows, one_value
from tests.races import at_once, codes
from tests.signals import listening
from tests.tries import record_of

OFF = "Maintenance is off: new requests are taken.\n"
ON = "Maintenance is on: new requests are refused, what is queued is served.\n"


def run(*arguments: str) -> str:
    return run_both(*arguments)[0]


def run_both(*arguments: str) -> tuple[str, str]:
    """Run the command and return what it wrote for its result and for its operator."""
    output, progress = io.StringIO(), io.StringIO()
    call_command("maintenance", *arguments, stdout=output, stderr=progress)
    return output.getvalue(), progress.getvalue()


@pytest.mark.django_db
def test_it_is_switched_on_and_off_and_shown() -> None:
    assert run("status") == OFF
    assert [run("on"), run("on"), run("status")] == [ON, ON, ON]
    assert modes.is_in_maintenance()
    assert json.loads(run("status", "--json")) == {"maintenance": True, "cancelled": 0}
    assert [run("off"), run("off"), run("status")] == [OFF, OFF, OFF]
    assert json.loads(run("off", "--json")) == {"maintenance": False, "cancelled": 0}
    assert SiteMode.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [[], ["maybe"]])
def test_anything_else_is_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        run(*arguments)

    assert SiteMode.objects.count() == 0


@pytest.mark.usefixtures("committed")
def test_it_may_be_switched_by_many_at_once() -> None:
    at_once(*[lambda: site_modes.set_maintenance(is_on=True)] * 8)

    assert modes.is_in_maintenance()
    assert SiteMode.objects.count() == 1


class TestTheAbort:
    """`on --cancel-waiting` cancels what nobody has taken yet; what workers have in hand is finished and paid."""

    @pytest.mark.spec("SIG-13")
    def test_tells_each_waiting_chat_request_once_that_it_is_cancelled(self, committed_horde: Horde) -> None:
        committed_horde.pop()
        ids = [committed_horde.submit()[1]["id"] for _ in range(3)]

        with ExitStack() as stack:
            heard = [stack.enter_context(listening(request_id)) for request_id in ids]
            assert run("on", "--cancel-waiting") == ON + "3 waiting requests were cancelled.\n"
            assert run("on", "--cancel-waiting") == ON + "0 waiting requests were cancelled.\n"

        assert heard == [[{"id": request_id, "event": "cancelled", "generations": 0}] for request_id in ids]
        for request_id in ids:
            shown = committed_horde.status(request_id)[1]
            assert (shown["done"], shown["waiting"], shown["faulted"]) == (True, 0, False)
            assert record_of(request_id) == (None, None)
        assert count_rows("queue_rows") == {"queue_rows": 0}
        assert committed_horde.pop()[1]["id"] is None

    @pytest.mark.spec("SIG-24")
    def test_ends_text_requests_without_a_word(self, committed_horde: Horde) -> None:
        request_id = committed_horde.queued_text()

        with listening(request_id) as heard:
            assert json.loads(run("on", "--cancel-waiting", "--json")) == {"maintenance": True, "cancelled": 1}

        assert heard == []
        assert committed_horde.text_status(request_id)[1]["done"] is True
        assert count_rows("queue_rows") == {"queue_rows": 0}

    @pytest.mark.spec("SIG-13")
    def test_leaves_alone_what_is_in_flight_answered_faulted_or_cancelled(self, committed_horde: Horde) -> None:
        horde = committed_horde
        in_flight, generation_id = horde.in_flight()
        answered, answered_by = horde.in_flight()
        horde.reply(answered_by)
        faulted, _ = horde.in_flight()
        one_value("UPDATE waiting_prompts SET faulted = true WHERE id = %s RETURNING 1", [faulted])
        cancelled = horde.queued()
        horde.cancel(cancelled)
        cancelled_at = one_value("SELECT cancelled_at FROM waiting_prompts WHERE id = %s", [cancelled])

        with ExitStack() as stack:
            heard = [
                stack.enter_context(listening(request_id)) for request_id in (in_flight, answered, faulted, cancelled)
            ]
            assert json.loads(run("on", "--cancel-waiting", "--json"))["cancelled"] == 0

        assert heard == [[]] * 4
        assert one_value("SELECT array_agg(cancelled_at) FROM waiting_prompts WHERE cancelled_at IS NOT NULL") == [
            cancelled_at
        ]
        assert horde.reply(generation_id)[1]["reward"] > 0
        shown = horde.status(in_flight)[1]
        assert (shown["done"], shown["finished"]) == (True, 1)

    def test_keeps_results_and_jobs_in_hand_and_settles_the_hold_with_the_last(
        self, committed_horde: Horde, settings: Settings
    ) -> None:
        horde = committed_horde
        settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 100, "free_output_floor": 50})
        horde.pop_text(max_length=1024)
        request_id = horde.queued_text(params={"n": 4, "max_length": 512}, models=[MODEL])
        unstarted = horde.queued_text(params={"n": 2, "max_length": 512}, models=[MODEL])
        stored, pending = horde.pop_text(max_length=1024, amount=2)[1]["ids"]
        horde.reply_text(stored)

        assert json.loads(run("on", "--cancel-waiting", "--json"))["cancelled"] == 2

        shown = horde.text_status(request_id)[1]
        assert (shown["waiting"], shown["processing"], shown["finished"], shown["done"]) == (0, 1, 1, False)
        assert horde.text_status(unstarted)[1]["done"] is True
        assert one_value("SELECT array_agg(resolution ORDER BY resolution) FROM holds") == ["voided", None]
        assert horde.reply_text(pending)[0] == 200
        charged = Decimal(str(horde.text_status(request_id)[1]["kudos"])) - 1
        assert horde.text_status(request_id)[1]["done"] is True
        assert one_value("SELECT settled_kudos FROM holds WHERE resolution = 'settled'") == charged
        assert (
            one_value("SELECT held_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", [horde.requester.id])
            == 0
        )
        assert horde.kudos(horde.requester) == 10_000 - 2 - charged
        assert ledger.reconcile().is_sound

    def test_lets_nothing_new_in_while_it_is_at_it(self, committed_horde: Horde) -> None:
        committed_horde.queued()
        answers: list[Answer] = []

        def tell(_: int) -> None:
            if not answers:
                answers.append(committed_horde.submit())

        site_modes.cancel_for_maintenance(now=clock.now(), tell=tell)

        assert codes(answers) == ["MaintenanceMode"]

    def test_refuses_new_requests_from_then_on(self, committed_horde: Horde) -> None:
        committed_horde.queued()

        run("on", "--cancel-waiting")

        assert committed_horde.submit()[1]["rc"] == "MaintenanceMode"
        assert committed_horde.submit_text()[1]["rc"] == "MaintenanceMode"
        assert count_rows("queue_rows", "waiting_prompts") == {"queue_rows": 0, "waiting_prompts": 1}

    def test_goes_page_by_page_and_tells_how_far_it_is(
        self, committed_horde: Horde, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cancel, "CANCEL_PAGE_ROWS", 2)
        committed_horde.pop()
        for _ in range(5):
            committed_horde.submit()

        output, told = run_both("on", "--cancel-waiting", "--json")

        assert json.loads(output) == {"maintenance": True, "cancelled": 5}
        assert told.splitlines() == ["2 cancelled so far", "4 cancelled so far", "5 cancelled so far"]

    @pytest.mark.parametrize("action", ["off", "status"])
    @pytest.mark.parametrize("is_on", [True, False])
    def test_is_refused_without_maintenance_and_changes_nothing(self, horde: Horde, action: str, is_on: bool) -> None:
        request_id = horde.queued()
        site_modes.set_maintenance(is_on=is_on)

        with pytest.raises(CommandError, match="--cancel-waiting goes with `on` alone"):
            run(action, "--cancel-waiting")

        assert modes.is_in_maintenance() is is_on
        assert horde.status(request_id)[1]["waiting"] == 1

    def test_by_two_at_once_cancels_each_request_once(self, committed_horde: Horde) -> None:
        committed_horde.pop()
        for _ in range(10):
            committed_horde.submit()

        output = at_once(*[lambda: run("on", "--cancel-waiting", "--json")] * 4)

        assert sum(json.loads(each)["cancelled"] for each in output) == 10
        assert one_value("SELECT count(*) FROM waiting_prompts WHERE cancelled_at IS NOT NULL AND n = 0") == 10
