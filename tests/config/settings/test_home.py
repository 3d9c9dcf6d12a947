"""The state directory is private, ours, and used by one daemon at a time."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from remit.config.settings.home import Home, inspect_home, ipc_endpoint, prepare_home
from remit.config.settings.load import load_settings
from remit.config.settings.lock import hold_lock, running_pid
from remit.errors import HomeError

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

DAEMON = """
import os, sys
from pathlib import Path
from remit.config.settings.home import Home
from remit.config.settings.load import load_settings
from remit.config.settings.lock import hold_lock
with hold_lock(Home(Path(sys.argv[1]))):
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    fresh = Home(tmp_path / "home")
    prepare_home(fresh)
    return fresh


@pytest.mark.parametrize(
    ("flag", "env", "expected"),
    [
        pytest.param("/f", {"REMIT_HOME": "/e"}, "/f", id="the-flag"),
        pytest.param(None, {"REMIT_HOME": "/e", "XDG_STATE_HOME": "/x"}, "/e", id="the-variable"),
        pytest.param(None, {"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/remit", id="xdg"),
        pytest.param(None, {"HOME": "/h"}, "/h/.local/state/remit", id="the-default"),
        pytest.param(
            None,
            {"XDG_STATE_HOME": "relative", "HOME": "/h"},
            "/h/.local/state/remit",
            id="a-relative-xdg-path-is-ignored",
        ),
        pytest.param(
            "", {"REMIT_HOME": "", "XDG_STATE_HOME": "/x"}, "/x/remit", id="empty-is-unset"
        ),
    ],
)
def test_the_strongest_source_names_the_home(
    flag: str | None, env: dict[str, str], expected: str
) -> None:
    assert str(load_settings({"home": flag}, env, "/").home) == expected


def test_a_relative_home_becomes_absolute() -> None:
    assert load_settings({"home": "here"}, {}, "/there").home == Path("/there/here")


def test_a_missing_home_is_made_private_with_its_parents(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b")
    assert prepare_home(home) == ()
    assert mode(home.path) == 0o700


@pytest.mark.parametrize("loose", [0o755, 0o777, 0o710, 0o500])
def test_a_loose_home_is_tightened_and_said(home: Home, loose: int) -> None:
    home.path.chmod(loose)
    repaired = prepare_home(home)
    assert mode(home.path) == 0o700
    assert len(repaired) == 1
    assert f"{loose:04o}" in repaired[0]
    assert prepare_home(home) == ()


def test_loose_secret_keys_are_tightened(home: Home) -> None:
    home.keys.mkdir(mode=0o755)
    secrets = [home.server_key, home.operator_key, home.keys / "reviewer.key"]
    for path in secrets:
        path.write_text("secret")
        path.chmod(0o644)
    home.server_public_key.write_text("public")
    home.server_public_key.chmod(0o644)
    prepare_home(home)
    assert [mode(path) for path in secrets] == [0o600] * 3
    assert mode(home.keys) == 0o700
    assert mode(home.server_public_key) == 0o644


def test_looking_changes_nothing(home: Home) -> None:
    home.path.chmod(0o755)
    home.server_key.write_text("secret")
    home.server_key.chmod(0o640)
    findings = list(inspect_home(home))
    assert [finding.repair for finding in findings] == [
        f"chmod 700 {home.path}",
        f"chmod 600 {home.server_key}",
    ]
    assert (mode(home.path), mode(home.server_key)) == (0o755, 0o640)


def test_looking_at_a_missing_home_finds_nothing(tmp_path: Path) -> None:
    assert list(inspect_home(Home(tmp_path / "none"))) == []


def refusal(home: Home) -> HomeError:
    with pytest.raises(HomeError) as caught:
        prepare_home(home)
    assert caught.value.hint
    return caught.value


def test_a_file_in_the_place_of_the_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "my home").write_text("")
    error = refusal(Home(tmp_path / "my home"))
    assert "not a directory" in error.message
    assert error.hint.startswith("mv '")


def test_a_home_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refusal(Home(tmp_path / "file" / "home"))


def test_a_home_that_cannot_be_made_is_refused() -> None:
    assert "/proc/remit" in refusal(Home(Path("/proc/remit"))).message


def test_a_link_to_our_own_directory_is_followed(tmp_path: Path, home: Home) -> None:
    home.path.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(home.path)
    prepare_home(Home(link))
    assert mode(home.path) == 0o700


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    assert "link" in refusal(Home(link)).message


@as_root
def test_somebody_elses_directory_is_refused_with_the_command(home: Home) -> None:
    os.chown(home.path, NOBODY, NOBODY)
    error = refusal(home)
    assert str(NOBODY) in error.message
    assert f"sudo chown -R {os.geteuid()} {home.path}" in error.hint


@as_root
def test_a_link_to_somebody_elses_directory_is_refused(tmp_path: Path, home: Home) -> None:
    os.chown(home.path, NOBODY, NOBODY)
    link = tmp_path / "link"
    link.symlink_to(home.path)
    assert "chown" in refusal(Home(link)).hint


@as_root
def test_somebody_elses_link_is_refused(tmp_path: Path, home: Home) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.path)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert "link" in refusal(Home(link)).message


@as_root
def test_somebody_elses_key_is_refused(home: Home) -> None:
    home.server_key.write_text("planted")
    os.chown(home.server_key, NOBODY, NOBODY)
    assert "chown" in refusal(home).hint


def test_a_key_that_is_a_link_is_refused(tmp_path: Path, home: Home) -> None:
    (tmp_path / "elsewhere").write_text("secret")
    home.operator_key.symlink_to(tmp_path / "elsewhere")
    assert "plain file" in refusal(home).message


def test_the_socket_of_a_short_home_has_an_ipc_address() -> None:
    assert ipc_endpoint(Home(Path("/h"))) == "ipc:///h/remit.sock"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit differs")
def test_the_longest_address_is_one_that_can_be_bound(tmp_path: Path) -> None:
    room = 107 - len(str(tmp_path)) - len("//remit.sock")
    fits, too_long = (Home(tmp_path / ("h" * length)) for length in (room, room + 1))
    ipc_endpoint(fits)
    fits.path.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(fits.socket))
    with pytest.raises(HomeError) as caught:
        ipc_endpoint(too_long)
    assert "107" in caught.value.message
    assert "--home" in caught.value.hint
    assert "tcp://" in caught.value.hint


def test_the_length_is_counted_in_bytes() -> None:
    with pytest.raises(HomeError):
        ipc_endpoint(Home(Path("/" + "ä" * 60)))


@pytest.fixture
def daemon(home: Home) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(  # noqa: S603 - our own child
        [sys.executable, "-c", DAEMON, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_a_second_daemon_is_refused_and_told_who_is_there(
    home: Home, daemon: "subprocess.Popen[str]"
) -> None:
    with daemon:
        assert daemon.stdout is not None
        pid = int(daemon.stdout.readline())
        assert running_pid(home) == pid
        with pytest.raises(HomeError, match=rf"already runs here \(pid {pid}\)"), hold_lock(home):
            pytest.fail("two daemons in one home")
        daemon.kill()
    assert running_pid(home) is None
    with hold_lock(home):
        assert running_pid(home) == os.getpid()


def test_after_an_orderly_end_nobody_runs(home: Home) -> None:
    assert running_pid(home) is None
    with hold_lock(home):
        pass
    assert running_pid(home) is None
    with hold_lock(home):
        pass


def test_the_lock_is_given_back_after_an_error(home: Home) -> None:
    with pytest.raises(ZeroDivisionError), hold_lock(home):
        raise ZeroDivisionError
    with hold_lock(home):
        pass


def test_what_a_dead_daemon_left_behind_is_cleared_away(home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.socket))
    home.endpoint.write_text("ipc://old")
    with hold_lock(home):
        assert not home.socket.exists()
        assert not home.endpoint.exists()


def test_a_refused_daemon_leaves_the_living_socket_alone(home: Home) -> None:
    with hold_lock(home), socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.socket))
        with pytest.raises(HomeError), hold_lock(home):
            pytest.fail("two daemons in one home")
        assert home.socket.is_socket()


def test_something_else_in_the_place_of_the_socket_is_not_removed(home: Home) -> None:
    home.socket.write_text("my thesis")
    with pytest.raises(HomeError, match="no socket"), hold_lock(home):
        pytest.fail("it started")
    assert home.socket.read_text() == "my thesis"
    assert running_pid(home) is None


@pytest.mark.parametrize("path", ["/proc/remit", "/nowhere/at/all"])
def test_a_lock_that_cannot_be_made_is_an_error_that_names_it(path: str) -> None:
    with pytest.raises(HomeError, match=path), hold_lock(Home(Path(path))):
        pytest.fail("it started")
