"""A client that lost an answer repeats its submission under the same key, and gets the same request."""

from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from tests.horde import MODEL, TRACES, Horde, count_rows, make_person, one_value

KEY = "9D1CF3A4-6a09-4f6e-93ae-64fd7b9d6a0e"
CONFLICT = {"message": "This operation key was already used for a different request.", "rc": "OperationKeyConflict"}


def submit(horde: Horde, *, key: str = KEY, api_key: str | None = None, **changes: Any) -> tuple[int, dict[str, Any]]:
    options = {"operation_key": key, **changes.pop("options", {})}
    return horde.submit(api_key=api_key, horde=options, **changes)


@pytest.mark.spec("OPK-01", "OPK-04", "OPK-05", "OPK-26", "OPK-49", "RTE-03")
def test_a_repeat_answers_200_with_the_first_request(horde: Horde) -> None:
    horde.pop()
    status, first = submit(horde)
    assert status == 202
    before = count_rows(*TRACES)

    again = submit(horde, key=KEY.lower())

    assert again == (200, {"id": first["id"], "kudos": first["kudos"]})
    assert count_rows(*TRACES) == before
    assert one_value("SELECT operation_key FROM waiting_prompts") == UUID(KEY)
    assert one_value("SELECT operation_fingerprint ~ '^[0-9a-f]{64}$' FROM waiting_prompts") is True


@pytest.mark.spec("OPK-09", "OPK-10", "OPK-53")
def test_another_body_under_the_key_is_a_conflict(horde: Horde) -> None:
    horde.pop()
    submit(horde)
    before = count_rows(*TRACES)

    assert submit(horde, max_tokens=65) == (400, CONFLICT)
    assert count_rows(*TRACES) == before


@pytest.mark.spec("OPK-06", "OPK-07", "OPK-08", "ADM-06", "ADM-08", "ADM-10", "ORD-04")
def test_a_repeat_is_answered_whatever_changed_since(horde: Horde, settings: Settings) -> None:
    horde.pop()
    first = submit(horde)[1]
    one_value("UPDATE users SET concurrency = 0 WHERE id = %s RETURNING 1", [horde.requester.id])
    one_value("DELETE FROM workers RETURNING 1")
    settings.HORDE = settings.HORDE.model_copy(update={"chat_admission_enabled": False})

    assert submit(horde) == (200, first)
    assert submit(horde, max_tokens=65) == (400, CONFLICT)
    assert submit(horde, options={"dry_run": True})[1]["rc"] == "ChatAdmissionDisabled"


@pytest.mark.spec("ADM-09")
def test_an_unclaimed_key_stays_free_while_admission_is_off(horde: Horde, settings: Settings) -> None:
    horde.pop()
    opened = settings.HORDE
    settings.HORDE = opened.model_copy(update={"chat_admission_enabled": False})
    assert submit(horde)[1]["rc"] == "ChatAdmissionDisabled"
    settings.HORDE = opened

    assert submit(horde)[0] == 202


@pytest.mark.spec("OPK-50")
def test_a_repeat_is_told_the_first_estimate_and_not_a_new_one(horde: Horde) -> None:
    horde.pop()
    first = submit(horde)[1]["id"]
    one_value("UPDATE waiting_prompts SET quoted_kudos = 77 RETURNING 1")

    assert submit(horde) == (200, {"id": first, "kudos": 77.0})


@pytest.mark.spec("OPK-51")
@pytest.mark.parametrize("ending", ["cancelled", "finished"])
def test_a_repeat_finds_a_request_that_has_ended(horde: Horde, ending: str) -> None:
    horde.pop()
    first = submit(horde)[1]
    if ending == "cancelled":
        horde.cancel(first["id"])
    else:
        horde.reply(horde.pop()[1]["id"])

    assert submit(horde) == (200, first)


@pytest.mark.spec("OPK-02", "OPK-21", "OPK-52")
def test_another_user_has_keys_of_their_own(horde: Horde) -> None:
    horde.pop()
    first = submit(horde)[1]["id"]

    status, second = submit(horde, api_key=make_person("other", kudos=100).api_key)
    anonymous = submit(horde, api_key="0000000000")

    assert (status, anonymous[0]) == (202, 202)
    assert len({first, second["id"], anonymous[1]["id"]}) == 3
    assert submit(horde, api_key="0000000000") == (200, anonymous[1])


@pytest.mark.spec("OPK-22", "OPK-23", "ORD-03")
def test_a_dry_run_neither_looks_up_nor_claims(horde: Horde) -> None:
    horde.pop()
    assert submit(horde, options={"dry_run": True})[0] == 200
    status, first = submit(horde)
    assert status == 202

    quoted = submit(horde, max_tokens=65, options={"dry_run": True})

    assert (quoted[0], "id" in quoted[1]) == (200, False)
    assert submit(horde) == (200, first)


@pytest.mark.spec("OPK-24", "OPK-25", "ORD-25")
def test_a_refused_submission_leaves_its_key_free(horde: Horde) -> None:
    assert submit(horde, api_key="nobody")[0] == 401
    assert submit(horde)[1]["rc"] == "UnknownChatModel"
    horde.pop()

    assert submit(horde)[0] == 202
    one_value("DELETE FROM queue_rows RETURNING 1")
    one_value("DELETE FROM waiting_prompts RETURNING 1")
    assert submit(horde)[0] == 202


@pytest.mark.spec("ORD-02")
def test_a_body_is_judged_before_its_key_is_looked_up(horde: Horde) -> None:
    horde.pop()
    submit(horde)

    assert submit(horde, max_tokens=1)[1]["rc"] == "BadRequest"


def test_an_equal_body_in_another_spelling_is_a_repeat(horde: Horde) -> None:
    horde.pop()
    first = submit(horde, temperature=1)[1]

    spelled = submit(
        horde, model=None, models=[MODEL], max_tokens=None, max_completion_tokens=64, temperature=1.0,
        options={"conformance": "strict", "include_reasoning": False},
    )  # fmt: skip

    assert spelled == (200, first)
