"""Who may submit now: the operator's switch, the user's limit, the client's own cap."""

import pytest
from pytest_django import Settings

from tests.horde import TRACES, Horde, count_rows, one_value


@pytest.fixture
def closed(settings: Settings) -> None:
    """Let the operator take no new chat requests."""
    settings.HORDE = settings.HORDE.model_copy(update={"chat_admission_enabled": False})


@pytest.mark.spec("ADM-02", "ADM-03", "ADM-12", "ADM-13", "ORD-14")
@pytest.mark.parametrize("options", [{}, {"dry_run": True}])
@pytest.mark.parametrize("api_key", [None, "nobody"])
def test_refuses_every_submission_while_admission_is_off(
    horde: Horde, closed: None, options: dict[str, bool], api_key: str | None
) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    assert horde.submit(horde=options, api_key=api_key) == (
        503,
        {
            "message": "Chat requests are not being admitted at the moment. Please try again later.",
            "rc": "ChatAdmissionDisabled",
        },
    )
    assert count_rows(*TRACES) == before


@pytest.mark.spec("ORD-12", "ORD-11")
def test_judges_the_body_before_the_switch(horde: Horde, closed: None) -> None:
    assert horde.submit(max_tokens=1)[0] == 400
    assert horde.submit(b"x" * (36 * 1024 * 1024 + 1))[0] == 413


@pytest.mark.spec("ADM-04", "ADM-05")
def test_serves_what_is_queued_while_admission_is_off(horde: Horde, settings: Settings) -> None:
    request_id, other = horde.queued(), horde.submit()[1]["id"]
    settings.HORDE = settings.HORDE.model_copy(update={"chat_admission_enabled": False})

    assert horde.reply(horde.pop()[1]["id"])[0] == 200
    assert horde.status(request_id)[1]["finished"] == 1
    assert horde.cancel(other)[0] == 200


@pytest.mark.spec("ORD-17")
def test_refuses_more_waiting_requests_than_the_user_may_have(horde: Horde) -> None:
    horde.pop()
    one_value("UPDATE users SET concurrency = 2 WHERE id = %s RETURNING 1", [horde.requester.id])
    assert [horde.submit()[0] for _ in range(2)] == [202, 202]
    before = count_rows(*TRACES)

    for model in ("demo/echo", "no/model"):
        assert horde.submit(model=model) == (
            429,
            {"message": "This would make 3 waiting requests, and the limit is 2.", "rc": "TooManyPrompts"},
        )
    assert count_rows(*TRACES) == before
    horde.pop()
    assert horde.submit()[0] == 202


def test_counts_anonymous_requests_by_their_models(horde: Horde) -> None:
    horde.pop()
    horde.pop(name="worker two", models=["other/model"], model_id="other/model")
    one_value("UPDATE users SET concurrency = 1 WHERE id = 0 RETURNING 1")

    assert horde.submit(api_key="0000000000")[0] == 202
    status, body = horde.submit(api_key="0000000000")
    assert (status, body["rc"]) == (429, "TooManyPrompts")
    assert "An account of your own" in body["message"]
    assert horde.submit(api_key="0000000000", model="other/model")[0] == 202


@pytest.mark.spec("HOP-21", "HOP-22", "HOP-23", "HOP-24", "HOP-27", "HOP-44")
@pytest.mark.parametrize("options", [{}, {"dry_run": True}])
def test_refuses_what_is_estimated_above_the_clients_cap(horde: Horde, options: dict[str, bool]) -> None:
    horde.pop()
    before = count_rows(*TRACES)

    assert horde.submit(horde={"max_kudos": 7, **options}) == (
        400,
        {
            "message": "This request is estimated to cost 8 kudos at current pricing, above its max_kudos of 7.",
            "rc": "ChatKudosCapExceeded",
        },
    )
    assert count_rows(*TRACES) == before
    assert horde.submit(horde={"max_kudos": 8, **options})[0] in {200, 202}
