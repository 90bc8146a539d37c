"""What script/server says and does before anything is installed; each case ends in one sentence with the remedy."""

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hordechat.local import ports, site_data
from hordechat.local.refusals import DamagedData
from tests.local.conftest import needs_root

NOBODY = 65534
OLD_PYTHON = """#!/bin/sh
case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac
"""


def server(project: Path, *arguments: str | Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [project / "script" / "server", *arguments], capture_output=True, text=True, check=False, env=environment
    )


def path_with(folder: Path, **programs: str) -> str:
    """Return a PATH that has the given scripts and what a shell script needs, and no other Python."""
    folder.mkdir()
    for name in ("dirname", "sh", "uname"):
        (folder / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder)


def python_without(folder: Path, module: str) -> str:
    """Return a script that runs this Python as if a module of its standard library were not installed."""
    library = Path(sysconfig.get_path("stdlib"))
    copy = folder / "lib" / library.name
    copy.mkdir(parents=True)
    for entry in library.iterdir():
        if entry.name != module:
            (copy / entry.name).symlink_to(entry)
    real = Path(sys.executable).resolve()
    return f'#!/bin/sh\nPYTHONHOME="{folder}" exec "{real}" "$@"\n'


@pytest.mark.parametrize("script", ["server", "test", "lock", "manage"])
def test_help_needs_no_packages(project: Path, environment: dict[str, str], script: str) -> None:
    command = [str(project / "script" / script), "--help"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert answer.returncode == 0
    assert f"usage: script/{script}" in answer.stdout
    assert not (project / ".venv").exists()
    assert not (project / ".local").exists()


def test_an_old_python_is_named(project: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    environment["PATH"] = path_with(tmp_path / "bin", python3=OLD_PYTHON)

    answer = server(project, environment=environment)

    assert answer.returncode == 1
    assert answer.stderr == (
        "hordechat needs Python 3.11 or later, and PATH has 3.9: install one (on Debian and Ubuntu: "
        "apt install python3 python3-venv) or put it on PATH.\n"
    )


def test_no_python_is_named(project: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    environment["PATH"] = path_with(tmp_path / "bin")

    answer = server(project, environment=environment)

    assert answer.returncode == 1
    assert "hordechat needs Python 3.11 or later, and PATH has none" in answer.stderr


@pytest.mark.parametrize("module", ["ensurepip", "venv"])
def test_a_python_without_its_venv_module_is_named(
    project: Path, tmp_path: Path, environment: dict[str, str], module: str
) -> None:
    environment["PATH"] = path_with(tmp_path / "bin", python3=python_without(tmp_path / "home", module))

    answer = server(project, "--port", str(_unused_port()), environment=environment)

    assert answer.returncode == 1
    assert answer.stderr == (
        "This Python cannot make a virtual environment because its venv module is not installed; "
        "on Debian and Ubuntu: apt install python3-venv\n"
    )
    assert not (project / ".venv").exists()


def test_a_python_that_can_make_environments_is_preferred(
    project: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    whole = f'#!/bin/sh\nexec "{Path(sys.executable).resolve()}" "$@"\n'
    environment["PATH"] = path_with(
        tmp_path / "bin", **{"python3": python_without(tmp_path / "home", "ensurepip"), "python3.11": whole}
    )
    environment["PIP_NO_INDEX"] = "1"

    answer = server(project, "--port", str(_unused_port()), environment=environment)

    assert "The packages could not be installed" in answer.stderr
    assert (project / ".venv" / "bin" / "python").exists()


def test_a_taken_port_is_named_before_anything_is_fetched(project: Path, environment: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind((ports.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]

        answer = server(project, "--port", str(port), environment=environment)

    assert answer.returncode == 1
    assert answer.stderr == (
        f"Port {port} is taken by another program; stop that program or choose another port with --port.\n"
    )
    assert not (project / ".venv").exists()


def test_a_data_folder_with_other_things_is_left_alone(
    project: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "holiday.jpg").write_text("beach")

    for arguments in (("--data", tmp_path / "photos"), ("--reset", "--data", tmp_path / "photos")):
        answer = server(project, *arguments, environment=environment)

        assert answer.returncode == 1
        assert answer.stderr == (
            f"{tmp_path / 'photos'} has other things in it; --data takes a new or empty folder, "
            "or one of an earlier start.\n"
        )
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["holiday.jpg"]


def test_a_data_folder_that_cannot_be_made_is_named(project: Path, environment: dict[str, str]) -> None:
    answer = server(project, "--data", "/proc/hordechat", environment=environment)

    assert answer.returncode == 1
    assert re.fullmatch(r"/proc/hordechat cannot be made \(.*\); run the command .*\n", answer.stderr)


@needs_root
def test_a_local_folder_of_another_user_is_named(project: Path, environment: dict[str, str]) -> None:
    (project / ".local").mkdir()
    os.chown(project / ".local", NOBODY, NOBODY)

    answer = server(project, environment=environment)

    assert answer.returncode == 1
    assert answer.stderr == (
        f"{project / '.local'} belongs to the user nobody and this is root; run the command as nobody, "
        "or remove that folder.\n"
    )


@pytest.mark.parametrize("arguments", [["--check", "--no-demo"], ["--port", "0"], ["--port", "x"], ["--unknown"]])
def test_a_wrong_command_line_is_explained(project: Path, environment: dict[str, str], arguments: list[str]) -> None:
    answer = server(project, *arguments, environment=environment)

    assert answer.returncode == 2
    assert "usage: script/server" in answer.stderr


def test_reset_removes_the_sites_data_and_nothing_else(
    project: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    data = tmp_path / "data"
    site = site_data.SiteData.open(data)
    site.announce("http://127.0.0.1:7001")
    (data / "credentials.json").write_text("{}")
    (data / "notes.txt").write_text("mine")

    refused = server(project, "--reset", "--data", data, environment=environment)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"A server already runs on {data} at http://127.0.0.1:7001 (process {os.getpid()}); "
        "stop it, or choose another folder with --data.\n"
    )
    assert (data / "credentials.json").exists()

    site.close()
    answer = server(project, "--reset", "--data", data, environment=environment)

    assert answer.returncode == 0
    assert [path.name for path in data.iterdir()] == ["notes.txt"]


def test_reset_of_nothing_is_fine(project: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    answer = server(project, "--reset", "--data", tmp_path / "nothing", environment=environment)

    assert answer.returncode == 0
    assert not (tmp_path / "nothing").exists()


def test_secrets_are_random_private_and_kept(tmp_path: Path) -> None:
    first = site_data.SiteData.open(tmp_path / "data")
    first.close()
    again = site_data.SiteData.open(tmp_path / "data")
    again.close()
    other = site_data.SiteData.open(tmp_path / "other")
    other.close()

    assert first.secrets == again.secrets
    assert set(first.secrets.values()).isdisjoint(other.secrets.values())
    assert (tmp_path / "data" / "secrets.json").stat().st_mode & 0o777 == 0o600


def test_commands_find_the_settings_of_the_site_that_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    site = site_data.SiteData.open(data)
    assert site_data.find_environment(data) is None

    site.announce("http://127.0.0.1:7001")
    site.publish({"DATABASE_URL": "postgresql://here/it"})

    assert site_data.find_environment(data) == {"DATABASE_URL": "postgresql://here/it"}
    assert stat.S_IMODE((data / "environment.json").stat().st_mode) == 0o600
    site.close()
    assert site_data.find_environment(data) is None


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_damaged_secrets_name_the_remedy(tmp_path: Path, text: str) -> None:
    site_data.SiteData.open(tmp_path / "data").close()
    (tmp_path / "data" / "secrets.json").write_text(text)

    with pytest.raises(DamagedData, match="script/server --reset"):
        site_data.SiteData.open(tmp_path / "data")


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind((ports.HOST, 0))
        port: int = probe.getsockname()[1]
    return port
