"""The virtual environment: made whole, made once, and made anew when it no longer fits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PREPARE = """
from hordechat.local import bootstrap, places
bootstrap.Environment(places.PROJECT / ".venv").prepare(())
"""


def prepare(project: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PREPARE],
        env={**environment, "PYTHONPATH": str(project), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return output


def test_a_half_made_environment_is_replaced_and_a_whole_one_kept(project: Path, environment: dict[str, str]) -> None:
    venv = project / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "junk").write_text("from a crash")

    first = finish(prepare(project, environment))
    assert "Making .venv" in first
    assert not (venv / "bin" / "junk").exists()

    (venv / "kept").touch()
    assert finish(prepare(project, environment)) == ""
    assert (venv / "kept").exists()

    stamp = json.loads((venv / "hordechat-stamp.json").read_text())
    stamp["python"] = "another"
    (venv / "hordechat-stamp.json").write_text(json.dumps(stamp))
    assert "Making .venv" in finish(prepare(project, environment))
    assert not (venv / "kept").exists()


def test_two_starts_in_one_clone_make_one_environment(project: Path, environment: dict[str, str]) -> None:
    started = [prepare(project, environment) for _ in range(2)]
    outputs = [finish(process) for process in started]

    assert sum("Making .venv" in output for output in outputs) == 1
    assert sum("Waiting for another command" in output for output in outputs) == 1
