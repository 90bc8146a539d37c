"""A PostgreSQL of one's own."""

import os
import re
import shutil
from pathlib import Path

import psycopg
import pytest

from hordechat.local import places, postgresql
from hordechat.local.refusals import DamagedData, Refused
from tests.local.conftest import needs_root, wait_until

SYSTEM_POSTGRESQL = Path("/usr/lib/postgresql/15/bin")


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return row[0] if row is not None else None


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_keeps_durable_data_from_one_start_to_the_next(tmp_path: Path) -> None:
    with postgresql.running(tmp_path / "pg", durable=True) as server:
        server.create_database("one")
        server.create_database("one")
        run(server.url("one"), "CREATE TABLE kept AS SELECT 7 AS seven")
        first = server.child.pid

    with postgresql.running(tmp_path / "pg", durable=True) as server:
        kept = ask(server.url("one"), "SELECT seven FROM kept")
        is_synced = ask(server.url("one"), "SHOW fsync")

    assert kept == 7
    assert is_synced == "on"
    assert not Path(f"/proc/{first}").exists()
    postgresql.remove(tmp_path / "pg")


def test_copies_and_drops_databases_and_survives_a_kill(tmp_path: Path) -> None:
    with postgresql.running(tmp_path / "pg", durable=False) as server:
        server.create_database("template_of_ours")
        run(server.url("template_of_ours"), "CREATE TABLE kept AS SELECT 7 AS seven")
        server.create_database("copy", template="template_of_ours")
        assert ask(server.url("copy"), "SELECT seven FROM kept") == 7

        server.restart()
        server.kill()
        server.start()

        assert ask(server.url("copy"), "SELECT seven FROM kept") == 7
        assert ask(server.url("copy"), "SHOW fsync") == "off"
        server.drop_database("copy")
        server.drop_database("copy")
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            ask(server.url("copy"), "SELECT 1")


def test_speaks_utf8_and_listens_on_no_port(tmp_path: Path) -> None:
    with postgresql.running(tmp_path / "pg", durable=False) as server:
        server.create_database("one")

        assert ask(server.url("one"), "SHOW server_encoding") == "UTF8"
        assert ask(server.url("one"), "SHOW listen_addresses") == ""
        assert ask(server.url("one"), "SELECT lower('ÄÖ')") == "äö"
        assert server.sockets.stat().st_mode & 0o077 == 0


def test_does_without_the_callers_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGPORT": "1", "PGHOST": "example.invalid", "PGDATA": "/nowhere", "LD_PRELOAD": ""}.items():
        monkeypatch.setenv(name, value)

    with postgresql.running(tmp_path / "pg", durable=False) as server:
        server.create_database("one")


@needs_root
def test_lives_outside_of_a_folder_its_user_cannot_reach(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    folder = tmp_path / "pg"

    with postgresql.running(folder, durable=True) as server:
        server.create_database("one")
        uid = Path(f"/proc/{server.child.pid}").stat().st_uid
    place = places.outside(folder)

    assert uid != 0
    assert (place / "cluster" / "PG_VERSION").exists()
    assert (folder / "elsewhere").read_text().strip() == str(place)

    postgresql.remove(folder)
    assert not place.exists()
    assert not folder.exists()


@needs_root
def test_lives_in_a_folder_its_user_can_reach(open_folder: Path) -> None:
    with postgresql.running(open_folder / "pg", durable=False) as server:
        assert server.sockets == open_folder / "pg" / "run"
        assert (open_folder / "pg" / "cluster").stat().st_uid == Path(f"/proc/{server.child.pid}").stat().st_uid != 0
        assert not places.outside(open_folder / "pg").exists()


@needs_root
def test_refuses_a_place_outside_that_is_anothers(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    place = places.outside(tmp_path / "pg")
    place.mkdir()
    os.chown(place, 65534, 65534)
    try:
        with (
            pytest.raises(Refused, match=f"{place} belongs to the user"),
            postgresql.running(tmp_path / "pg", durable=False),
        ):
            pass
    finally:
        place.rmdir()


def test_finds_room_for_its_socket_under_a_long_path(open_folder: Path) -> None:
    folder = open_folder / ("long-" * 20) / "pg"
    folder.parent.mkdir()

    with postgresql.running(folder, durable=False) as server:
        server.create_database("one")
        sockets = server.sockets

    assert folder not in sockets.parents
    assert not sockets.exists()


def test_starts_over_a_stale_pid_that_now_is_someone_elses(tmp_path: Path) -> None:
    with postgresql.running(tmp_path / "pg", durable=True) as server:
        cluster = Path(str(ask(server.url("postgres"), "SHOW data_directory")))
        server.kill()
        stale = cluster / "postmaster.pid"
        assert wait_until(stale.exists)
        lines = stale.read_text().splitlines()
        stale.write_text("\n".join([str(os.getpid()), *lines[1:]]))

    with postgresql.running(tmp_path / "pg", durable=True) as server:
        server.create_database("one")
    postgresql.remove(tmp_path / "pg")


def test_refuses_a_second_server_on_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "LOCK_SECONDS", 0)

    with postgresql.running(tmp_path / "pg", durable=False):
        with pytest.raises(Refused, match="already runs"), postgresql.running(tmp_path / "pg", durable=False):
            pass
        with pytest.raises(Refused, match="stop the server"):
            postgresql.remove(tmp_path / "pg")


@pytest.mark.parametrize("damage", ["global/pg_control", "PG_VERSION", "postgresql.conf"])
def test_names_the_remedy_for_damaged_data(open_folder: Path, damage: str) -> None:
    with postgresql.running(open_folder / "pg", durable=True):
        pass
    (open_folder / "pg" / "cluster" / damage).unlink()

    with (
        pytest.raises(DamagedData, match=r"script/server --reset"),
        postgresql.running(open_folder / "pg", durable=True),
    ):
        pass


def test_leaves_nothing_of_an_unfinished_start(open_folder: Path) -> None:
    unfinished = open_folder / "pg" / "unfinished-cluster"
    unfinished.mkdir(parents=True)
    (unfinished / "junk").write_text("from a crash")

    with postgresql.running(open_folder / "pg", durable=False) as server:
        server.create_database("one")

    assert not unfinished.exists()


@pytest.mark.parametrize("name", ["Upper", "a-b", "x; DROP"])
def test_refuses_names_that_are_none(tmp_path: Path, name: str) -> None:
    with postgresql.running(tmp_path / "pg", durable=False) as server, pytest.raises(ValueError, match=re.escape(name)):
        server.create_database(name)


@pytest.mark.skipif(not SYSTEM_POSTGRESQL.exists(), reason="PostgreSQL 15, the least version, is not installed here")
def test_runs_the_system_postgresql_when_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_POSTGRESQL_BIN", str(SYSTEM_POSTGRESQL))

    with postgresql.running(tmp_path / "pg", durable=False) as server:
        server.create_database("one")
        assert str(ask(server.url("one"), "SHOW server_version")).startswith("15.")


def test_says_what_to_install_when_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORDE_POSTGRESQL_BIN", str(tmp_path))

    with pytest.raises(postgresql.PostgreSQLMissing, match=r"apt install postgresql.*DATABASE_URL"):
        postgresql.find_binaries()
    assert shutil.which("postgres", path=str(tmp_path)) is None
