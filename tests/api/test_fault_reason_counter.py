"""Every faulted chat submit of a worker's owner is counted by the reason sent, and never by a worker's own words."""

from typing import Any

import pytest

from tests.horde import Horde, make_person, one_value
from tests.tries import (
    FAULT_MESSAGES,
    NO_RECORD,
    NONCONFORMANT,
    UNKNOWN_REASONS,
    faults_counted,
    record_of,
    refuse,
    strict_in_flight,
)


def one_more(
    before: dict[tuple[str, ...], float], reason: str, *, trusted: str = "true"
) -> dict[tuple[str, ...], float]:
    return before | {(reason, trusted): before.get((reason, trusted), 0) + 1}


@pytest.mark.spec("WFR-19", "WFR-20")
@pytest.mark.parametrize("is_trusted", [True, False])
@pytest.mark.parametrize("reason", FAULT_MESSAGES)
def test_has_the_reason_and_the_owners_trust(horde: Horde, reason: str, is_trusted: bool) -> None:
    one_value("UPDATE users SET is_trusted = %s WHERE id = %s RETURNING 1", [is_trusted, horde.owner.id])
    _, generation_id = horde.in_flight()
    before = faults_counted()

    horde.fault(generation_id, fault_reason=reason)

    assert faults_counted() == one_more(before, reason, trusted=str(is_trusted).lower())


@pytest.mark.spec("WFR-20", "WFR-21", "WFR-24")
@pytest.mark.parametrize("reason", UNKNOWN_REASONS, ids=lambda reason: repr(reason)[:24])
def test_never_has_what_a_worker_sent_beside_that(horde: Horde, reason: Any) -> None:
    _, generation_id = horde.in_flight()
    before = faults_counted()

    horde.fault(generation_id, fault_reason=reason)

    assert faults_counted() == one_more(before, "unknown")


@pytest.mark.spec("WFR-22")
def test_has_a_repeated_fault_again(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    label = ("generation_error", "true")
    before = faults_counted()

    answers = [horde.fault(generation_id, fault_reason="generation_error")[0] for _ in range(3)]

    assert answers == [200, 400, 400]
    assert faults_counted() == before | {label: before.get(label, 0) + 3}


@pytest.mark.spec("WFR-23")
def test_has_the_fault_after_a_refusal_once_and_the_refusal_not_at_all(horde: Horde) -> None:
    _, generation_id = strict_in_flight(horde)
    before = faults_counted()
    refuse(horde, generation_id, NONCONFORMANT)
    assert faults_counted() == before

    horde.fault(generation_id, fault_reason="reply_refused")

    assert faults_counted() == one_more(before, "reply_refused")


@pytest.mark.spec("WFR-26")
def test_does_not_have_what_nobody_with_the_right_key_sent(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    stranger = make_person("stranger")
    before = faults_counted()

    answers = [
        horde.fault(generation_id, api_key=api_key, fault_reason="generation_error")
        for api_key in ("nobody", stranger.api_key, horde.requester.api_key)
    ]

    assert [body["rc"] for _, body in answers] == ["InvalidAPIKey", "WrongCredentials", "WrongCredentials"]
    assert faults_counted() == before
    assert record_of(request_id) == NO_RECORD


@pytest.mark.spec("WFR-19")
def test_has_faults_sent_as_a_text_body_too(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    before = faults_counted()

    assert horde.fault(generation_id, model_id=None, generation="")[0] == 200

    assert faults_counted() == one_more(before, "none")
