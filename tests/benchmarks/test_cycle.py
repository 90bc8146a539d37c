"""The load measurement's own arithmetic: what counts, and what it holds against the server."""

import os
import time

import pytest

from benchmarks import processor
from benchmarks.cycle import Window, list_faults, percentile, summarise
from benchmarks.driver import CYCLE, Record

SERVED = {
    "accepted": {"r1": "a", "r2": "b"},
    "answered": {"r1": "a....", "r2": "b...."},
    "popped": [("g1", "a"), ("g2", "b")],
    "stored": ["g1", "g2"],
}


@pytest.mark.parametrize(
    ("percent", "value"), [(50, 2.0), (75, 3.0), (95, 4.0), (99, 4.0), (100, 4.0), (1, 1.0), (0, 1.0)]
)
def test_a_percentile_is_a_value_that_was_measured(percent: float, value: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], percent) == value


def test_a_percentile_of_nothing_is_zero() -> None:
    assert percentile([], 99) == 0.0


def test_only_calls_that_ended_inside_the_window_count() -> None:
    record = Record()
    record.samples[CYCLE] = [(9.9, 1.0), (10.0, 0.010), (11.9, 0.030), (12.0, 1.0)]

    line = next(line for line in summarise(record, Window(start=10.0, end=12.0, processor={})) if line.route == CYCLE)

    assert (line.count, line.per_second) == (2, 1.0)
    assert (line.p50_milliseconds, line.p99_milliseconds, line.max_milliseconds) == (10.0, 30.0, 30.0)


def test_a_run_in_which_each_request_was_served_once_has_no_faults() -> None:
    assert list_faults(_record()) == []


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({"answered": {"r1": "a"}}, ["Request r2 was accepted and has no reply."]),
        ({"answered": {"r1": "b", "r2": "b"}}, ["Request r1 got the reply of another."]),
        ({"popped": [("g1", "a"), ("g2", "b"), ("g3", "b")]}, ["The request marked b was handed out 2 times."]),
        ({"popped": [("g1", "a"), ("g2", "b"), ("g3", "c")]}, ["A worker got c, which no client asked."]),
        ({"stored": ["g1"]}, ["2 requests were accepted and 1 replies stored."]),
    ],
)
def test_a_broken_promise_is_a_fault(change: dict[str, object], faults: list[str]) -> None:
    assert list_faults(_record(**change)) == faults


def test_an_unexpected_answer_is_a_fault() -> None:
    record = _record()
    record.errors["pop: 500 InternalServerError"] += 2

    assert list_faults(record) == ["2 times pop: 500 InternalServerError."]


@pytest.mark.skipif(not processor.PROC.joinpath("self/stat").exists(), reason="needs Linux's /proc")
def test_processor_time_grows_with_the_work_of_the_process() -> None:
    before = processor.read_seconds({"self": os.getpid()})["self"]
    end = time.process_time() + 0.1

    while time.process_time() < end:
        pass

    assert 0.05 <= processor.read_seconds({"self": os.getpid()})["self"] - before <= 0.5


def test_a_process_that_is_not_there_took_nothing() -> None:
    assert processor.read_seconds({"gone": 2**22 + 1}) == {"gone": 0.0}


def _record(**change: object) -> Record:
    record = Record()
    for name, value in {**SERVED, **change}.items():
        setattr(record, name, value)
    return record
