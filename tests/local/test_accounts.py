"""The first start's accounts, also when it was interrupted."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hordechat.local import accounts, postgresql, stack
from hordechat.local.refusals import DamagedData

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a site whose tables are there and empty."""
    with postgresql.running(tmp_path / "pg", durable=False) as server:
        server.create_database("site")
        environment = {**os.environ, "DATABASE_URL": server.url("site")}
        migrated = stack.manage(environment, "migrate", "--no-input")
        assert migrated.returncode == 0, migrated.stderr
        yield environment


def test_an_interrupted_start_goes_on_where_it_stopped(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "credentials.json"
    first = accounts.ensure(environment, path)
    assert first.new == ("admin", "demo_owner", "demo_client")
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(first.admin.password) >= 24
    assert first.demo_owner.password == ""

    # As if the start had ended after making these two and before writing them down.
    written = json.loads(path.read_text())
    path.write_text(json.dumps({"demo_owner": written["demo_owner"]}))
    second = accounts.ensure(environment, path)

    assert second.new == ("admin", "demo_client")
    assert second.demo_owner == first.demo_owner
    assert second.admin.login.startswith("admin_")
    assert second.demo_client.api_key != first.demo_client.api_key
    assert accounts.ensure(environment, path).new == ()


@pytest.mark.parametrize("text", ["{", '{"admin": 1, "demo_owner": 2, "demo_client": 3}', '{"admin": {"name": "x"}}'])
def test_damaged_credentials_name_the_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "credentials.json").write_text(text)
    unreachable = {**os.environ, "DATABASE_URL": "postgresql://nobody@/none?host=/nowhere"}

    with pytest.raises(DamagedData, match="script/server --reset"):
        accounts.ensure(unreachable, tmp_path / "credentials.json")
