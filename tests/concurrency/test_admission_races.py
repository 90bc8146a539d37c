"""Parallel submissions: a key makes one request, and a limit admits exactly as many as it says."""

from decimal import Decimal
from typing import Any

import pytest

from billing_app.selectors import ledger
from requests_app.selectors import requesters
from requests_app.selectors.requesters import Requester
from tests.horde import Answer, Horde, count_rows, one_value
from tests.races import at_once, codes

KEY = "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"


@pytest.mark.spec("OPK-14", "OPK-15", "OPK-16", "OPK-18")
def test_twenty_equal_submissions_of_one_key_make_one_request(committed_horde: Horde) -> None:
    committed_horde.pop()

    answers = at_once(*[lambda: committed_horde.submit(horde={"operation_key": KEY})] * 20)

    assert codes(answers) == ["200"] * 19 + ["202"]
    assert len({body["id"] for _, body in answers}) == 1
    assert len({body["kudos"] for _, body in answers}) == 1
    assert count_rows("waiting_prompts", "queue_rows") == {"waiting_prompts": 1, "queue_rows": 1}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 1


@pytest.mark.spec("OPK-19")
def test_the_losers_with_another_body_are_conflicts(committed_horde: Horde) -> None:
    committed_horde.pop()

    def submit(tokens: int) -> tuple[int, dict[str, Any]]:
        return committed_horde.submit(max_tokens=tokens, horde={"operation_key": KEY})

    answers = at_once(*[lambda tokens=64 + number % 2: submit(tokens) for number in range(20)])

    assert sorted(codes(answers)) == ["200"] * 9 + ["202"] + ["OperationKeyConflict"] * 10
    assert count_rows("waiting_prompts") == {"waiting_prompts": 1}


def test_fifty_submissions_against_a_limit_of_thirty_admit_thirty(committed_horde: Horde) -> None:
    committed_horde.pop()

    answers = at_once(*[committed_horde.submit] * 50)

    assert codes(answers) == ["202"] * 30 + ["TooManyPrompts"] * 20
    assert count_rows("waiting_prompts", "queue_rows") == {"waiting_prompts": 30, "queue_rows": 30}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 30
    assert ledger.reconcile().is_sound


@pytest.mark.spec("OPK-06", "OPK-18")
@pytest.mark.parametrize("taken", ["the last slot", "the last of a shared key"])
def test_a_repeat_is_answered_though_the_submission_it_repeats_just_took(
    committed_horde: Horde, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    committed_horde.pop()
    one_value("UPDATE users SET concurrency = 1 WHERE id = %s RETURNING 1", [committed_horde.requester.id])
    key = committed_horde.share_key(committed_horde.requester, left_kudos=Decimal("3.05"))
    api_key = key if taken == "the last of a shared key" else None
    find = requesters.find
    first: list[Answer] = []

    def find_late(**question: Any) -> Requester:
        # The repeat has not found its key claimed, and now the submission it repeats commits.
        if not first:
            monkeypatch.setattr(requesters, "find", find)
            first.append(committed_horde.submit(api_key=api_key, horde={"operation_key": KEY}))
            one_value("UPDATE shared_keys SET left_kudos = 0 RETURNING 1")
        return find(**question)

    monkeypatch.setattr(requesters, "find", find_late)
    repeat = committed_horde.submit(api_key=api_key, horde={"operation_key": KEY})

    assert [status for status, _ in [*first, repeat]] == [202, 200]
    assert repeat[1]["id"] == first[0][1]["id"]
    assert count_rows("waiting_prompts") == {"waiting_prompts": 1}
