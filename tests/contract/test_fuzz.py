"""Whatever bytes arrive: a submission or a typed refusal, and soon."""

import time
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hordechat.contract import chat
from hordechat.contract.json_body import parse_object
from hordechat.errors import HordeError
from hordechat.http.refusals import body_of
from tests.contract.broken_bodies import mutated_bodies, mutated_bytes
from tests.speed import loops_of

MAX_CPU_SECONDS = 0.2
"""A hundred times what such a body takes; only a walk that does not end soon passes it."""
MAX_LOOPS = 6
"""The same in loops of `tests.speed`."""
MAX_REFUSAL_BYTES = 100_000
LONG = settings(max_examples=10_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def refusal_of(sent: bytes) -> HordeError | None:
    try:
        chat.parse(parse_object(sent))
    except HordeError as refused:
        return refused
    return None


def judge(sent: bytes) -> None:
    started = time.process_time()
    refusal = refusal_of(sent)
    seconds = time.process_time() - started

    # A moment in which the machine stood still is no fault of the body's: it is judged again, by the unit.
    if seconds >= MAX_CPU_SECONDS:
        assert loops_of(lambda: refusal_of(sent), enough=MAX_LOOPS) <= MAX_LOOPS
    if refusal is not None:
        assert 0 < len(orjson.dumps(body_of(refusal))) < MAX_REFUSAL_BYTES


@pytest.mark.slow
@pytest.mark.timeout(1800)
@LONG
@given(mutated_bodies())
def test_ten_thousand_bodies_of_broken_values_are_judged(sent: dict[str, Any]) -> None:
    judge(orjson.dumps(sent))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@LONG
@given(mutated_bytes())
def test_ten_thousand_bodies_of_broken_bytes_are_judged(sent: bytes) -> None:
    judge(sent)


@settings(max_examples=200, deadline=None)
@given(mutated_bodies().map(orjson.dumps) | mutated_bytes() | st.binary(max_size=50))
def test_a_few_broken_bodies_are_judged(sent: bytes) -> None:
    judge(sent)
