"""What is above the free output allowance is held before it is queued, and the hold ends with its request."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from billing_app.selectors import ledger
from hordechat.infra import clock, redis
from hordechat.model_reference import published, reference, refresh
from hordechat.model_reference.reference import ProcessCopy
from requests_app.services import expiry, faults
from tests.horde import MODEL, TRACES, Answer, Horde, chat_body, count_rows, make_person, one_value

LARGE = "elinas/chronos-70b-v2"
# Of a model outside the reference, which counts as one billion parameters: 512 tokens divided by 21.
HELD = Decimal("24.38")


@pytest.fixture(autouse=True)
def low_ceiling(settings: Settings) -> None:
    """Let 100 tokens be free, whatever the load."""
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 100, "free_output_floor": 50})


def held(horde: Horde) -> Decimal:
    return Decimal(
        one_value("SELECT held_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", [horde.requester.id])
    )


def submit(
    horde: Horde,
    *,
    tokens: int = 512,
    api_key: str | None = None,
    options: dict[str, object] | None = None,
    **changes: Any,
) -> Answer:
    return horde.submit(chat_body(max_tokens=tokens, horde=options, **changes), api_key=api_key)


@pytest.mark.spec("REQ-10", "ALW-01", "ALW-02", "CTX-10")
@pytest.mark.parametrize(("tokens", "kudos"), [(100, None), (101, Decimal("4.81"))])
def test_what_is_above_the_allowance_is_held(horde: Horde, tokens: int, kudos: Decimal | None) -> None:
    horde.pop()

    request_id = submit(horde, tokens=tokens)[1]["id"]

    assert one_value("SELECT upfront_kudos FROM waiting_prompts") == kudos
    assert held(horde) == (kudos or 0)
    assert one_value("SELECT key FROM holds") == (f"upfront:{request_id}" if kudos else None)


@pytest.mark.spec("CTX-10", "ALW-63")
def test_the_allowance_is_asked_of_the_lowered_length(horde: Horde) -> None:
    horde.pop(chat_limits={"max_context_length": 8192, "max_length": 100})

    assert submit(horde)[0] == 202
    assert held(horde) == 0


@pytest.mark.spec("ALW-06", "ALW-16")
def test_without_an_able_worker_the_floor_is_free(horde: Horde) -> None:
    horde.pop(chat_features=[])

    assert submit(horde, tokens=50)[0] == 202
    assert held(horde) == 0
    assert submit(horde, tokens=51)[0] == 202
    assert held(horde) == Decimal("2.43")


@pytest.mark.spec("PRC-22")
def test_the_dearest_listed_model_decides(horde: Horde) -> None:
    horde.pop()

    assert submit(horde, tokens=101, model=None, models=[MODEL, LARGE])[0] == 202
    assert held(horde) == Decimal("331.76")


@pytest.mark.spec("ALW-03", "ALW-04", "ALW-62", "ORD-32")
def test_who_cannot_cover_it_is_refused_and_nothing_is_left(horde: Horde) -> None:
    horde.pop()
    poor = make_person("poor", kudos=49)
    before = count_rows(*TRACES)

    # Of 49 kudos 25 are the balance no debit goes below.
    assert submit(horde, api_key=poor.api_key) == (
        403,
        {
            "message": "This request needs 24.38 kudos upfront: max_tokens 512 is above the free output allowance "
            "of 100 tokens. Lower max_tokens or raise your kudos.",
            "rc": "KudosUpfront",
        },
    )
    assert count_rows(*TRACES) == before
    assert submit(horde, tokens=100, api_key=poor.api_key)[0] == 202


def test_the_anonymous_user_covers_no_hold_at_its_minimum(horde: Horde) -> None:
    horde.pop()
    one_value("UPDATE accounts SET posted_kudos = minimum_kudos WHERE user_id = 0 AND kind = 'balance' RETURNING 1")

    assert submit(horde, api_key="0000000000")[1]["rc"] == "KudosUpfront"


@pytest.mark.spec("ALW-07", "ALW-09", "ALW-14", "ALW-60")
def test_who_lacks_kudos_for_what_nobody_can_serve_is_told_that(horde: Horde) -> None:
    horde.pop(chat_features=[])
    before = count_rows(*TRACES)

    assert submit(horde, api_key=make_person("poor").api_key) == (
        403,
        {"message": "No online worker can serve this request.", "rc": "NoEligibleWorker"},
    )
    assert count_rows(*TRACES) == before


@pytest.mark.spec("ALW-08")
def test_the_same_goes_for_a_shared_key(horde: Horde) -> None:
    horde.pop(chat_features=[])
    key = horde.share_key(horde.requester, left_kudos=2)

    assert submit(horde, api_key=key)[1]["message"] == "No online worker can serve this request."


@pytest.mark.spec("ALW-15")
def test_what_is_covered_is_queued_though_nobody_can_serve_it(horde: Horde) -> None:
    horde.pop(chat_features=[])

    assert submit(horde)[0] == 202
    assert held(horde) == HELD


@pytest.mark.spec("ALW-65", "HOP-45")
def test_a_dry_run_holds_nothing_and_is_not_refused_for_kudos(horde: Horde) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    assert submit(horde, api_key=make_person("poor").api_key, options={"dry_run": True})[0] == 200
    assert count_rows(*TRACES) == before


@pytest.mark.spec("HOP-26", "HOP-25")
def test_the_cap_is_judged_before_anything_is_held(horde: Horde) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    status, body = submit(horde, api_key=make_person("poor").api_key, options={"max_kudos": 1})

    assert (status, body["rc"]) == (400, "ChatKudosCapExceeded")
    assert count_rows(*TRACES) == before


def test_nothing_is_held_for_what_costs_nothing(
    horde: Horde, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 101 tokens of a model of a hundred thousand parameters cost less than half a hundredth.
    file = tmp_path / "reference.json"
    file.write_bytes(orjson.dumps({"own/Tiny": {"parameters": 100_000, "nsfw": False}}))
    settings.HORDE = settings.HORDE.model_copy(update={"text_model_reference": str(file)})
    redis.marks().delete(published.KEY)
    refresh.refresh(now=clock.now())
    copy = ProcessCopy(place=str(file))
    copy.take_published()
    monkeypatch.setattr(reference, "_copy", copy)
    horde.pop(models=["own/Tiny"], model_id="own/Tiny")

    assert submit(horde, tokens=101, model="own/Tiny")[0] == 202

    redis.marks().delete(published.KEY)
    assert one_value("SELECT upfront_kudos IS NULL FROM waiting_prompts") is True
    assert held(horde) == 0


class TestTheEndOfAHold:
    """It ends once, with the request, whatever ends that."""

    def queued(self, horde: Horde) -> str:
        horde.pop()
        request_id: str = submit(horde)[1]["id"]
        assert held(horde) == HELD
        return request_id

    def resolution(self) -> tuple[str, Decimal]:
        return one_value("SELECT resolution FROM holds"), one_value("SELECT settled_kudos FROM holds")

    def test_by_its_reply(self, horde: Horde) -> None:
        request_id = self.queued(horde)

        horde.reply(horde.pop()[1]["id"])

        charged = Decimal(str(horde.status(request_id)[1]["kudos"])) - 1
        assert held(horde) == 0
        assert self.resolution() == ("settled", charged)
        assert horde.kudos(horde.requester) == 10_000 - 1 - charged
        assert ledger.reconcile().is_sound

    def test_by_its_cancellation(self, horde: Horde) -> None:
        horde.cancel(self.queued(horde))

        assert held(horde) == 0
        assert self.resolution() == ("voided", Decimal(0))

    def test_a_cancelled_request_in_flight_keeps_it_until_its_reply(self, horde: Horde) -> None:
        request_id = self.queued(horde)
        generation_id = horde.pop()[1]["id"]
        horde.cancel(request_id)
        assert held(horde) == HELD

        horde.reply(generation_id)

        assert held(horde) == 0
        assert self.resolution()[0] == "settled"

    def test_a_cancelled_request_in_flight_loses_it_with_the_job_given_back(self, horde: Horde) -> None:
        request_id = self.queued(horde)
        generation_id = horde.pop()[1]["id"]
        horde.cancel(request_id)

        horde.fault(generation_id)

        assert horde.status(request_id)[1]["done"] is True
        assert held(horde) == 0
        assert self.resolution() == ("voided", Decimal(0))

    def test_a_cancelled_request_in_flight_loses_it_with_the_last_lapsed_lease(self, horde: Horde) -> None:
        horde.pop_text(max_length=1024)
        request_id = horde.queued_text(params={"n": 3, "max_length": 1024}, models=[MODEL])
        first, second, third = horde.pop_text(max_length=1024, amount=3)[1]["ids"]
        horde.call("DELETE", f"generate/text/status/{request_id}")
        horde.reply_text(first)
        horde.reply_text(second, state="faulted")
        assert held(horde) > 0

        assert faults.abort_lapsed(now=clock.now() + timedelta(seconds=151)) == 1

        shown = horde.text_status(request_id)[1]
        assert shown["done"] is True
        assert held(horde) == 0
        assert self.resolution() == ("settled", Decimal(str(shown["kudos"])) - 1)
        assert ledger.reconcile().is_sound
        assert horde.reply_text(third)[1]["rc"] == "AbortedGen"

    def test_by_its_expiry(self, horde: Horde) -> None:
        self.queued(horde)

        assert expiry.expire_batch(now=clock.now() + timedelta(minutes=21)) == 1

        assert held(horde) == 0
        assert self.resolution() == ("voided", Decimal(0))
        assert ledger.reconcile().is_sound

    def test_a_given_back_job_keeps_it(self, horde: Horde) -> None:
        self.queued(horde)

        horde.fault(horde.pop()[1]["id"])

        assert held(horde) == HELD


@pytest.mark.spec("ALW-05")
class TestText:
    """A text request may be lowered to what is free, where its client says so."""

    def worker(self, horde: Horde) -> None:
        horde.pop(chat_jobs=None, prompt_jobs=None, max_length=1024, max_context_length=8192)

    def test_it_is_lowered_when_its_kudos_cannot_be_held(self, horde: Horde) -> None:
        self.worker(horde)
        poor = make_person("poor")
        sent: dict[str, Any] = {"params": {"max_length": 512}, "models": [MODEL]}

        refused = horde.submit_text(api_key=poor.api_key, **sent)
        lowered = horde.submit_text(api_key=poor.api_key, allow_downgrade=True, **sent)

        assert refused[1]["message"].startswith("This request needs 24.38 kudos upfront: max_length 512 is above")
        assert lowered[0] == 202
        assert one_value("SELECT max_length FROM waiting_prompts") == 100
        assert one_value("SELECT upfront_kudos FROM waiting_prompts") is None

    def test_it_is_never_lengthened_and_takes_slow_workers_then(self, horde: Horde) -> None:
        self.worker(horde)
        poor = make_person("poor")
        sent: dict[str, Any] = {"params": {"max_length": 64}, "models": [MODEL], "slow_workers": False}

        assert horde.submit_text(api_key=poor.api_key, **sent)[1]["rc"] == "KudosUpfront"
        assert horde.submit_text(api_key=poor.api_key, allow_downgrade=True, **sent)[0] == 202
        assert one_value("SELECT (max_length, slow_workers, upfront_kudos)::text FROM waiting_prompts") == "(64,t,)"

    def test_lowered_it_is_quoted_and_served_as_what_it_became(self, horde: Horde) -> None:
        horde.pop(chat_jobs=None, prompt_jobs=None, max_length=100, max_context_length=8192)
        poor = make_person("poor")
        sent: dict[str, Any] = {"models": [MODEL], "api_key": poor.api_key}

        status, lowered = horde.submit_text(params={"max_length": 512}, allow_downgrade=True, **sent)

        assert status == 202
        length = one_value("SELECT max_length FROM waiting_prompts")
        assert lowered.keys() == {"id", "kudos"}, "a worker can serve it now"
        assert lowered["kudos"] == horde.submit_text(params={"max_length": length}, dry_run=True, **sent)[1]["kudos"]
        assert one_value("SELECT quoted_kudos FROM waiting_prompts") == Decimal(lowered["kudos"])

    def test_a_shared_key_with_too_little_left_lowers_it_like_its_owner(self, horde: Horde) -> None:
        self.worker(horde)
        key = horde.share_key(horde.requester, left_kudos=24)
        sent: dict[str, Any] = {"params": {"max_length": 512}, "models": [MODEL], "api_key": key}

        assert horde.submit_text(**sent)[1]["rc"] == "SharedKeyInsufficientKudos"
        assert horde.submit_text(allow_downgrade=True, **sent)[0] == 202
        assert one_value("SELECT max_length FROM waiting_prompts") == 100
        assert held(horde) == 0
        assert one_value("SELECT left_kudos FROM shared_keys") == 23

    def test_it_is_not_lowered_when_they_can(self, horde: Horde) -> None:
        self.worker(horde)

        horde.submit_text(params={"max_length": 512, "n": 2}, models=[MODEL], allow_downgrade=True)

        assert one_value("SELECT max_length FROM waiting_prompts") == 512
        assert held(horde) == 2 * HELD

    @pytest.mark.spec("ALW-64")
    def test_without_an_able_worker_it_is_lowered_to_the_floor(self, horde: Horde) -> None:
        poor = make_person("poor")
        sent: dict[str, Any] = {"params": {"max_length": 512}, "models": [MODEL], "api_key": poor.api_key}

        assert horde.submit_text(**sent) == (
            403,
            {"message": "No online worker can serve this request.", "rc": "NoEligibleWorker"},
        )
        assert horde.submit_text(allow_downgrade=True, **sent)[0] == 202
        assert one_value("SELECT max_length FROM waiting_prompts") == 50

    @pytest.mark.spec("ALW-38")
    def test_without_slow_workers_its_kudos_are_held_whatever_its_length(self, horde: Horde) -> None:
        self.worker(horde)

        assert horde.submit_text(slow_workers=False)[0] == 202
        assert held(horde) == 20, "what a request for any model has to have"

    @pytest.mark.spec("ALW-39", "ALW-40")
    def test_one_for_chosen_workers_may_have_to_be_held_and_is_not_lowered(
        self, horde: Horde, settings: Settings
    ) -> None:
        self.worker(horde)
        worker_id = str(one_value("SELECT id FROM workers"))
        assert horde.submit_text(workers=[worker_id])[0] == 202
        assert held(horde) == 0
        settings.HORDE = settings.HORDE.model_copy(update={"upfront_kudos_on_worker_list": True})

        assert horde.submit_text(workers=[worker_id])[0] == 202
        assert held(horde) == 20
        poor = make_person("poor")
        refused = horde.submit_text(workers=[worker_id], allow_downgrade=True, api_key=poor.api_key)
        assert (refused[0], refused[1]["rc"]) == (403, "KudosUpfront")
        assert "chosen workers" in refused[1]["message"]

    def test_one_under_a_used_up_shared_key_may_run_as_anonymous(self, horde: Horde) -> None:
        key = horde.share_key(horde.requester, left_kudos=0)

        assert horde.submit_text(api_key=key)[1]["rc"] == "SharedKeyEmpty"
        assert horde.submit_text(api_key=key, allow_downgrade=True)[0] == 202
        assert one_value("SELECT user_id FROM waiting_prompts") == 0
        assert one_value("SELECT shared_key_id FROM waiting_prompts") is None
