"""The checks chat and text submissions share: the site, the key, the account, the address, each at its place."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from hordechat.infra import address_timeouts, clock
from tests.horde import MODEL, TRACES, Answer, Horde, count_rows, one_value

KEY = "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"


@pytest.fixture
def closed_site(horde: Horde) -> None:
    one_value("INSERT INTO site_modes (maintenance) VALUES (true) RETURNING 1")


def submit(horde: Horde, family: str, *, api_key: str | None = None, **changes: Any) -> Answer:
    if family == "text":
        return horde.submit_text(api_key=api_key, **changes)
    return horde.submit(api_key=api_key, **changes)


FAMILIES = pytest.mark.parametrize("family", ["chat", "text"])


@pytest.mark.spec("ORD-05", "ORD-18", "ORD-28", "ORD-32", "RTE-13")
@FAMILIES
@pytest.mark.parametrize("api_key", [None, "nobody"])
def test_maintenance_comes_before_the_key_and_the_model(
    horde: Horde, closed_site: None, family: str, api_key: str | None
) -> None:
    before = count_rows(*TRACES)

    status, body = submit(horde, family, api_key=api_key, **({"model": "no/model"} if family == "chat" else {}))

    assert (status, body["rc"]) == (400, "MaintenanceMode")
    assert count_rows(*TRACES) == before


@pytest.mark.spec("ORD-15")
def test_a_closed_admission_comes_before_maintenance(horde: Horde, closed_site: None, settings: Settings) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"chat_admission_enabled": False})

    assert horde.submit()[1]["rc"] == "ChatAdmissionDisabled"


@pytest.mark.spec("ADM-07")
def test_a_closed_chat_admission_leaves_text_alone(horde: Horde, settings: Settings) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"chat_admission_enabled": False})

    assert horde.submit_text()[0] == 202


@pytest.mark.spec("ORD-26")
def test_a_repeat_is_answered_in_maintenance(horde: Horde) -> None:
    horde.pop()
    first = horde.submit(horde={"operation_key": KEY})[1]
    one_value("INSERT INTO site_modes (maintenance) VALUES (true) RETURNING 1")

    assert horde.submit(horde={"operation_key": KEY}) == (200, first)


@FAMILIES
def test_a_deleted_account_asks_for_nothing(horde: Horde, family: str) -> None:
    one_value("UPDATE users SET is_deleted = true WHERE id = %s RETURNING 1", [horde.requester.id])
    before = count_rows(*TRACES)

    status, body = submit(horde, family)

    assert (status, body["rc"]) == (403, "DeletedUser")
    assert count_rows(*TRACES) == before


@pytest.mark.spec("RTE-31")
@FAMILIES
def test_a_missing_key_is_a_missing_field(horde: Horde, family: str) -> None:
    path = f"generate/{family}/async"
    sent = {"prompt": "Hello"} if family == "text" else {"model": MODEL, "messages": [{"role": "user", "content": ""}]}

    status, body = horde.call("POST", path, sent)

    assert (status, body["rc"], list(body["errors"])) == (400, "BadRequest", ["apikey"])


@pytest.mark.spec("RTE-14", "RTE-31")
@FAMILIES
@pytest.mark.parametrize(("headers", "stored"), [({"Client-Agent": "app:1:me"}, "app:1:me"), ({}, "unknown:0:unknown")])
def test_the_client_names_itself(horde: Horde, family: str, headers: dict[str, str], stored: str) -> None:
    horde.pop()
    sent = {"prompt": "Hello"} if family == "text" else {"model": MODEL, "messages": [{"role": "user", "content": ""}]}

    status, _ = horde.call("POST", f"generate/{family}/async", sent, api_key=horde.requester.api_key, **headers)

    assert status == 202
    assert one_value("SELECT client_agent FROM waiting_prompts") == stored


@pytest.fixture
def timed_out(horde: Horde) -> Any:
    address_timeouts.put("127.0.0.1", seconds=3600, now=clock.now())
    yield
    address_timeouts.remove("127.0.0.1")


@pytest.mark.spec("ORD-19", "ORD-05", "RTE-13")
@FAMILIES
def test_an_address_in_a_time_out_is_refused_before_the_model_is_looked_at(
    horde: Horde, timed_out: None, family: str
) -> None:
    before = count_rows(*TRACES)

    status, body = submit(horde, family, **({"model": "no/model"} if family == "chat" else {}))

    assert (status, body["rc"]) == (403, "TimeoutIP")
    assert "seconds" in body["message"]
    assert count_rows(*TRACES) == before


@pytest.mark.spec("ORD-05")
@FAMILIES
def test_the_limit_of_waiting_requests_comes_before_the_time_out(horde: Horde, timed_out: None, family: str) -> None:
    one_value("UPDATE users SET concurrency = 0 WHERE id = %s RETURNING 1", [horde.requester.id])

    assert submit(horde, family)[1]["rc"] == "TooManyPrompts"


def test_how_long_a_very_long_time_out_lasts_is_not_told(horde: Horde) -> None:
    address_timeouts.put("127.0.0.1", seconds=5 * 24 * 3600, now=clock.now())
    try:
        assert "seconds" not in horde.submit()[1]["message"]
    finally:
        address_timeouts.remove("127.0.0.1")


@pytest.mark.spec("RTE-19", "RTE-18")
def test_chat_and_text_count_together_against_one_limit(horde: Horde) -> None:
    horde.pop()
    one_value("UPDATE users SET concurrency = 3 WHERE id = %s RETURNING 1", [horde.requester.id])
    assert horde.submit()[0] == 202
    assert horde.submit_text(params={"n": 2})[0] == 202

    assert horde.submit()[1]["rc"] == "TooManyPrompts"
    assert horde.submit_text() == (
        429,
        {"message": "This would make 4 waiting requests, and the limit is 3.", "rc": "TooManyPrompts"},
    )


def test_a_revoked_key_submits_repeats_and_reads_nothing(horde: Horde) -> None:
    horde.pop()
    assert horde.submit(horde={"operation_key": KEY})[0] == 202
    request_id = horde.queued_text()
    one_value("UPDATE api_keys SET revoked_at = now() WHERE user_id = %s RETURNING 1", [horde.requester.id])

    refused = [
        horde.submit(horde={"operation_key": KEY}),
        horde.submit(),
        horde.submit_text(),
        horde.call("GET", f"generate/text/request/{request_id}", api_key=horde.requester.api_key),
    ]

    assert [(status, body["rc"]) for status, body in refused] == [(401, "InvalidAPIKey")] * 4


class TestSharedKeys:
    """A shared key asks in its owner's name, up to what it may spend."""

    @pytest.mark.spec("RTE-13", "OPK-03")
    def test_its_owner_pays_and_it_counts(self, horde: Horde) -> None:
        horde.pop()
        key = horde.share_key(horde.requester, left_kudos=100)

        status, body = horde.submit(api_key=key, horde={"operation_key": KEY})
        own = horde.submit(horde={"operation_key": KEY})

        assert (status, own) == (202, (200, body))
        assert one_value("SELECT user_id FROM waiting_prompts") == horde.requester.id
        assert horde.kudos(horde.requester) == Decimal(9999)
        assert one_value("SELECT (left_kudos, used_kudos)::text FROM shared_keys") == "(99.00,1.00)"

    def test_a_reply_counts_against_it_down_to_nothing(self, horde: Horde) -> None:
        horde.pop()
        key = horde.share_key(horde.requester, left_kudos=Decimal("3.20"))
        assert horde.submit(api_key=key)[0] == 202

        long = {"role": "assistant", "content": "word " * 60}
        assert horde.reply(horde.pop()[1]["id"], message=long)[0] == 200

        spent = Decimal(10_000) - horde.kudos(horde.requester)
        assert one_value("SELECT left_kudos FROM shared_keys") == 0
        assert one_value("SELECT used_kudos FROM shared_keys") == spent > Decimal("3.20")

    @FAMILIES
    @pytest.mark.parametrize(
        ("columns", "rc"),
        [
            ({"left_kudos": 0}, "SharedKeyEmpty"),
            ({"expires_at": clock.now() - timedelta(seconds=1)}, "SharedKeyExpired"),
        ],
    )
    @pytest.mark.spec("ORD-32")
    def test_one_that_is_used_up_or_over_is_refused(
        self, horde: Horde, family: str, columns: dict[str, Any], rc: str
    ) -> None:
        horde.pop()
        key = horde.share_key(horde.requester, **columns)
        before = count_rows(*TRACES)

        status, body = submit(horde, family, api_key=key)

        assert (status, body["rc"]) == (403, rc)
        assert count_rows(*TRACES) == before

    @FAMILIES
    def test_one_nobody_made_is_nobodys_key(self, horde: Horde, family: str) -> None:
        assert submit(horde, family, api_key=str(uuid4()))[1]["rc"] == "InvalidAPIKey"

    @pytest.mark.spec("ORD-27")
    def test_a_repeat_is_answered_after_it_expired_and_was_emptied(self, horde: Horde) -> None:
        horde.pop()
        key = horde.share_key(horde.requester, left_kudos=100)
        first = horde.submit(api_key=key, horde={"operation_key": KEY})[1]
        one_value("UPDATE shared_keys SET left_kudos = 0, expires_at = now() - interval '1 s' RETURNING 1")

        assert horde.submit(api_key=key, horde={"operation_key": KEY}) == (200, first)

    @pytest.mark.spec("PRC-23", "ORD-32")
    @FAMILIES
    def test_it_has_to_have_left_what_the_dearest_model_may_cost(self, horde: Horde, family: str) -> None:
        # 64 tokens by 68.98 billion parameters, divided by 21, are 210.22; by 1 billion they are 3.05.
        large = "elinas/chronos-70b-v2"
        horde.pop()
        key = horde.share_key(horde.requester, left_kudos=210)
        sent = {"models": [MODEL, large]} | ({"model": None} if family == "chat" else {"params": {"max_length": 64}})
        horde.pop(name="text", chat_jobs=None, prompt_jobs=None, models=[MODEL])
        before = count_rows(*TRACES)

        status, body = submit(horde, family, api_key=key, **sent)

        assert (status, body["rc"]) == (403, "SharedKeyInsufficientKudos")
        assert "has 210.00 kudos left and the request needs 210.22" in body["message"]
        assert count_rows(*TRACES) == before
        assert one_value("SELECT left_kudos FROM shared_keys") == 210
        one_value("UPDATE shared_keys SET left_kudos = 211 RETURNING 1")
        assert submit(horde, family, api_key=key, **sent)[0] == 202

    @FAMILIES
    def test_it_caps_the_output(self, horde: Horde, family: str) -> None:
        horde.pop()
        key = horde.share_key(horde.requester, max_text_tokens=63)
        sent: dict[str, Any] = {"params": {"max_length": 64}} if family == "text" else {}
        before = count_rows(*TRACES)

        status, body = submit(horde, family, api_key=key, **sent)

        assert (status, body["rc"]) == (400, "BadRequest")
        assert "63" in body["message"]
        assert "64" in body["message"]
        assert count_rows(*TRACES) == before
