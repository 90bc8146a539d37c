"""A request is done once nothing more will come: the one expression every route, signal and hold goes by."""

import pytest

from requests_app.rules.progress import Progress


@pytest.mark.parametrize(
    ("jobs", "waiting", "in_flight", "stored", "is_done", "is_done_if_cancelled"),
    [
        pytest.param(1, 1, 0, 0, False, False, marks=pytest.mark.spec("FLW-09"), id="all waits"),
        pytest.param(1, 0, 1, 0, False, False, marks=pytest.mark.spec("FLW-09"), id="all is in flight"),
        pytest.param(3, 1, 0, 2, False, False, marks=pytest.mark.spec("FLW-09"), id="one waits"),
        pytest.param(3, 0, 1, 2, False, False, marks=pytest.mark.spec("FLW-09"), id="one is in flight"),
        pytest.param(2, 1, 0, 2, False, False, marks=pytest.mark.spec("FLW-09"), id="one waits beside all results"),
        pytest.param(2, 0, 1, 2, False, False, marks=pytest.mark.spec("FLW-09"), id="one runs beside all results"),
        pytest.param(1, 0, 0, 1, True, True, marks=pytest.mark.spec("FLW-07"), id="all is stored"),
        pytest.param(3, 0, 0, 3, True, True, marks=pytest.mark.spec("FLW-07"), id="all of several is stored"),
        pytest.param(3, 0, 0, 2, False, True, marks=pytest.mark.spec("FLW-07", "FLW-08"), id="one is missing"),
        pytest.param(1, 0, 0, 0, False, True, marks=pytest.mark.spec("FLW-08", "FLW-13"), id="there is nothing"),
    ],
)
def test_is_done_when_nothing_waits_or_runs_and_all_is_stored_or_the_rest_cancelled(
    jobs: int, waiting: int, in_flight: int, stored: int, is_done: bool, is_done_if_cancelled: bool
) -> None:
    for is_cancelled, expected in ((False, is_done), (True, is_done_if_cancelled)):
        found = Progress(
            jobs=jobs,
            waiting=waiting,
            in_flight=in_flight,
            stored=stored,
            is_faulted=False,
            is_cancelled=is_cancelled,
        )
        assert found.is_done is expected


@pytest.mark.spec("FLW-06")
@pytest.mark.parametrize("counts", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)])
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_is_done_when_faulted_whatever_else(counts: tuple[int, int, int], is_cancelled: bool) -> None:
    waiting, in_flight, stored = counts

    assert Progress(
        jobs=1, waiting=waiting, in_flight=in_flight, stored=stored, is_faulted=True, is_cancelled=is_cancelled
    ).is_done
