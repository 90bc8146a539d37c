"""Folders: whose they are and who can reach them."""

import os
from pathlib import Path

import pytest

from hordechat.local import places
from hordechat.local.refusals import Refused
from tests.local.conftest import needs_root

NOBODY = 65534


@needs_root
def test_another_users_folder_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)

    with pytest.raises(
        Refused, match=rf"{folder} belongs to the user nobody and this is root; run the command as nobody"
    ):
        places.own(folder)


def test_a_folder_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(Refused, match="/proc/hordechat cannot be made"):
        places.own(Path("/proc/hordechat"))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(Refused, match="not a plain folder"):
        places.own(tmp_path / "link")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_folder_in_a_read_only_one_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(Refused, match="cannot be made"):
        places.own(tmp_path / "new")


def test_reachable_means_every_folder_above_lets_others_pass(open_folder: Path) -> None:
    inner = open_folder / "inner"
    inner.mkdir(mode=0o755)
    assert places.is_reachable_by_all(inner)

    open_folder.chmod(0o700)

    assert not places.is_reachable_by_all(inner)


def test_private_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    places.write_privately(path, "one")
    places.write_privately(path, "two")

    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_lasts_as_long_as_someone_inherited_it(tmp_path: Path) -> None:
    first = places.lock(tmp_path / "lock")
    assert first is not None
    inherited = os.dup(first)
    os.close(first)

    assert places.lock(tmp_path / "lock") is None
    os.close(inherited)
    last = places.lock(tmp_path / "lock")
    assert last is not None
    os.close(last)
