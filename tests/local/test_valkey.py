"""A Valkey of one's own."""

from pathlib import Path

import pytest
import redis

from hordechat.local import valkey
from hordechat.local.refusals import Refused


def connect(server: valkey.Valkey) -> redis.Redis:
    return redis.Redis.from_url(server.url)


def test_serves_sixteen_databases_on_a_private_socket(tmp_path: Path) -> None:
    with valkey.running(tmp_path / "valkey") as server:
        with connect(server) as client:
            client.set("key", "value")
            assert client.get("key") == b"value"
            assert client.config_get("databases") == {"databases": "16"}
            assert client.config_get("port") == {"port": "0"}
        assert server.socket_path.parent.stat().st_mode & 0o077 == 0
        pid = server.child.pid

    assert not Path(f"/proc/{pid}").exists()
    assert not server.socket_path.exists()


def test_forgets_everything_when_stopped(tmp_path: Path) -> None:
    with valkey.running(tmp_path / "valkey") as server:
        with connect(server) as client:
            client.set("key", "value")
        url = server.url

        server.stop()
        server.start()

        with connect(server) as client:
            assert client.get("key") is None
        assert server.url == url


def test_finds_room_for_its_socket_under_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long-" * 30)

    with valkey.running(folder) as server, connect(server) as client:
        assert client.ping()


def test_refuses_a_second_server_on_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey, "LOCK_SECONDS", 0)

    with (
        valkey.running(tmp_path / "valkey"),
        pytest.raises(Refused, match="already runs"),
        valkey.running(tmp_path / "valkey"),
    ):
        pass
