"""The setting launch_user: a user that cannot be is refused before anything is started."""

import os
import pwd
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit.config.settings.launch_user import launch_dir, launch_user, make_launch_dir
from remit.config.settings.load import load_settings
from remit.config.settings.table import Settings
from remit.errors import SettingsError

NOBODY = pwd.getpwnam("nobody")
TCP = "tcp://127.0.0.1:7420"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that belong to root")


@pytest.fixture
def root_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def settings(folder: Path, user: str = "nobody", **changes: Any) -> Settings:
    found = load_settings({"home": str(folder / "home"), "launch_user": user}, {}, str(folder))
    return msgspec.structs.replace(found, **changes)


def refusal(found: Settings) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        launch_user(found)
    (problem,) = caught.value.details["problems"]
    assert problem["hint"]
    assert problem["where"] in caught.value.message
    return caught.value


def test_without_the_setting_processes_run_as_the_daemon_does(tmp_path: Path) -> None:
    assert launch_user(settings(tmp_path, "")) is None
    assert launch_dir(settings(tmp_path, "")) == tmp_path / "home" / "launched"


def test_a_daemon_that_is_not_root_cannot_give_processes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root" in refusal(settings(tmp_path, endpoint=TCP)).message


@pytest.mark.usefixtures("root_daemon")
def test_a_user_that_is_not_there_is_refused_with_the_command_that_makes_it(tmp_path: Path) -> None:
    error = refusal(settings(tmp_path, "no-such-user-9"))
    assert "there is no user 'no-such-user-9'" in error.message
    assert "useradd" in error.hint


@pytest.mark.usefixtures("root_daemon")
def test_root_is_no_other_user(tmp_path: Path) -> None:
    assert "root is no other user" in refusal(settings(tmp_path, "root", endpoint=TCP)).message


@pytest.mark.usefixtures("root_daemon")
def test_a_socket_in_the_home_is_out_of_reach_for_another_user(tmp_path: Path) -> None:
    error = refusal(settings(tmp_path))
    assert "cannot reach a socket in the home" in error.message
    assert "tcp://" in error.hint


@pytest.mark.usefixtures("root_daemon")
def test_folders_in_the_home_are_out_of_reach_too(tmp_path: Path) -> None:
    error = refusal(settings(tmp_path, endpoint=TCP))
    assert "cannot reach the home" in error.message
    assert "launch_dir" in error.hint


@pytest.mark.usefixtures("root_daemon")
def test_a_folder_behind_a_closed_one_is_refused_by_the_one_that_is_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    found = settings(tmp_path, endpoint=TCP, launch_dir=closed / "inner" / "launched")
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.getuid() and above != Path("/tmp"):  # noqa: S108
            above.chmod(above.stat().st_mode | 0o011)
    assert f"it may not pass through {closed}" in refusal(found).message


@as_root
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_directory_that_others_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    _open_above(tmp_path)
    folder = tmp_path / "launched"
    folder.mkdir()
    folder.chmod(mode)
    found = settings(tmp_path, endpoint=TCP, launch_dir=folder)
    assert "nobody else writes to" in refusal(found).message


@as_root
def test_a_link_or_somebody_elses_directory_is_refused(tmp_path: Path) -> None:
    _open_above(tmp_path)
    own, link = tmp_path / "own", tmp_path / "link"
    own.mkdir()
    link.symlink_to(own)
    found = settings(tmp_path, endpoint=TCP, launch_dir=link)
    assert "belongs to root" in refusal(found).message
    os.chown(own, NOBODY.pw_uid, NOBODY.pw_gid)
    found = settings(tmp_path, endpoint=TCP, launch_dir=own)
    assert "belongs to root" in refusal(found).message


@as_root
def test_a_user_that_can_be_used_has_its_ids_and_variables(tmp_path: Path) -> None:
    _open_above(tmp_path)
    found = settings(tmp_path, endpoint=TCP, launch_dir=tmp_path / "launched")
    user = launch_user(found)
    assert user is not None
    assert user.ids.split(",")[:2] == [str(NOBODY.pw_uid), str(NOBODY.pw_gid)]
    assert user.variables == {"HOME": NOBODY.pw_dir, "USER": "nobody", "LOGNAME": "nobody"}
    make_launch_dir(launch_dir(found), user)
    assert (tmp_path / "launched").stat().st_mode & 0o777 == 0o711
    assert launch_user(found) == user


def test_the_daemons_own_folders_are_its_own(tmp_path: Path) -> None:
    make_launch_dir(tmp_path / "a" / "launched", None)
    assert (tmp_path / "a" / "launched").stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingsError, match="cannot be made"):
        make_launch_dir(tmp_path / "file" / "launched", None)


def _open_above(folder: Path) -> None:
    """Let others pass through what pytest keeps closed."""
    for above in (folder, *folder.parents):
        if above.stat().st_uid == os.getuid():
            above.chmod(above.stat().st_mode | 0o011)
