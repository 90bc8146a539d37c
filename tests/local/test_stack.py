"""The processes of hordechat, started one by one for tests and benchmarks."""

import http.client
import os
from pathlib import Path

import pytest

from hordechat.local import stack
from hordechat.local.refusals import Refused
from tests.local.conftest import descendants, runs, wait_until

pytestmark = pytest.mark.slow


def test_the_api_comes_back_on_its_port_after_a_kill() -> None:
    with stack.api(os.environ, workers=2, threads=2) as api:
        first = stack.get_json(api.port, "/healthz/live")
        below = descendants(api.child.pid)

        api.kill()
        with pytest.raises(OSError, match="refused"):
            stack.get_json(api.port, "/healthz/live")
        assert wait_until(lambda: not any(runs(pid) for pid in below))
        api.start()

        assert first == stack.get_json(api.port, "/healthz/live")
        assert first == (http.client.OK, {"status": "ok", "instance": api.instance_id})
        assert len(below) == 2


def test_celery_and_beat_start_and_leave_nothing(tmp_path: Path) -> None:
    with stack.celery_worker(os.environ) as worker, stack.celery_beat(os.environ, schedule=tmp_path / "s") as beat:
        below = {worker.child.pid, beat.child.pid} | descendants(worker.child.pid)
        assert len(below) == 4

    assert wait_until(lambda: not any(runs(pid) for pid in below))


def test_a_process_that_cannot_start_says_why() -> None:
    broken = stack.api({**os.environ, "DATABASE_URL": "nonsense"})

    with pytest.raises(Refused, match=r"api ended at its start[\s\S]*DATABASE_URL: has to look like"), broken:
        pass
