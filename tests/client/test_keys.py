"""Key files, and how a client finds its daemon."""

import stat
from pathlib import Path

import pytest

from remit_client.address import default_home, find_address
from remit_client.errors import BadKey, Unreachable
from remit_client.keys import Key, load_key, new_key, save_key


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REMIT_HOME", "REMIT_KEY", "REMIT_ENDPOINT", "REMIT_SERVER_KEY"):
        monkeypatch.delenv(name, raising=False)


def make_home(folder: Path) -> tuple[Key, str]:
    """A home as the daemon leaves it."""
    folder.mkdir()
    operator, server = new_key("operator"), new_key("server")
    save_key(folder / "operator.key", operator)
    (folder / "server.pub").write_text(server.public_key + "\n")
    (folder / "endpoint").write_text("ipc:///somewhere\n")
    return operator, server.public_key


def test_a_saved_key_is_for_its_owner_only_and_loads_again(tmp_path: Path) -> None:
    key = new_key("ann", server_key=new_key("s").public_key, endpoint="ipc:///x")
    save_key(tmp_path / "ann.key", key)
    assert stat.S_IMODE((tmp_path / "ann.key").stat().st_mode) == 0o600
    assert load_key(tmp_path / "ann.key") == key
    assert [path.name for path in tmp_path.iterdir()] == ["ann.key"]


def test_a_key_does_not_show_its_secret() -> None:
    key = new_key("ann")
    assert key.secret_key not in repr(key)


@pytest.mark.parametrize(
    ("text", "mode", "hint"),
    [
        pytest.param(None, 0o600, "remit key new", id="missing"),
        pytest.param("{}", 0o644, "chmod 600", id="readable-for-others"),
        pytest.param("{}", 0o600, "JSON", id="without-fields"),
        pytest.param("not json", 0o600, "JSON", id="not-json"),
        pytest.param("\xff", 0o600, "JSON", id="not-utf-8"),
        pytest.param(
            '{"name": "a", "public_key": "short", "secret_key": "short"}',
            0o600,
            "40 characters",
            id="too-short",
        ),
    ],
)
def test_a_key_file_that_cannot_be_used_says_where_and_how_to_repair_it(
    tmp_path: Path, text: str | None, mode: int, hint: str
) -> None:
    path = tmp_path / "ann.key"
    if text is not None:
        path.write_text(text, "latin-1")
        path.chmod(mode)
    with pytest.raises(BadKey) as caught:
        load_key(path)
    assert str(path) in caught.value.message
    assert hint in caught.value.hint


def test_the_home_says_everything(tmp_path: Path) -> None:
    operator, server = make_home(tmp_path / "home")
    address = find_address(tmp_path / "home")
    assert (address.endpoint, address.server_key) == ("ipc:///somewhere", server)
    assert address.key == operator


def test_an_agent_finds_everything_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, server = new_key("agent"), new_key("server").public_key
    save_key(tmp_path / "agent.key", key)
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("REMIT_KEY", str(tmp_path / "agent.key"))
    monkeypatch.setenv("REMIT_ENDPOINT", "tcp://127.0.0.1:1")
    monkeypatch.setenv("REMIT_SERVER_KEY", server)
    address = find_address()
    assert (address.endpoint, address.server_key) == ("tcp://127.0.0.1:1", server)
    assert address.key == key


def test_a_key_file_can_say_where_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key("agent", server_key=new_key("s").public_key, endpoint="ipc:///k")
    save_key(tmp_path / "agent.key", key)
    assert find_address(key=tmp_path / "agent.key").endpoint == "ipc:///k"
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("REMIT_KEY", str(tmp_path / "agent.key"))
    address = find_address()
    assert (address.endpoint, address.server_key) == ("ipc:///k", key.server_key)


def test_what_the_call_says_beats_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, _ = make_home(tmp_path / "home")
    monkeypatch.setenv("REMIT_KEY", "/no/such/key")
    monkeypatch.setenv("REMIT_ENDPOINT", "ipc:///elsewhere")
    address = find_address(tmp_path / "home")
    assert (address.endpoint, address.key) == ("ipc:///somewhere", operator)
    assert find_address(tmp_path / "home", "ipc:///said").endpoint == "ipc:///said"


def test_a_home_without_a_daemon_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(Unreachable) as caught:
        find_address(tmp_path)
    assert "remit serve" in caught.value.hint


@pytest.mark.parametrize("text", [None, "short", "\xff"])
def test_a_server_key_that_cannot_be_used_is_named(tmp_path: Path, text: str | None) -> None:
    make_home(tmp_path / "home")
    path = tmp_path / "home" / "server.pub"
    path.unlink()
    if text is not None:
        path.write_text(text, "latin-1")
    with pytest.raises(BadKey) as caught:
        find_address(tmp_path / "home")
    assert "server.pub" in caught.value.message


def test_a_server_key_from_the_environment_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_SERVER_KEY", "short")
    with pytest.raises(BadKey):
        find_address(endpoint="ipc:///x", key=new_key("a"))


def test_the_default_home_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_home() == tmp_path / "remit"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_home() == Path.home() / ".local" / "state" / "remit"
    monkeypatch.setenv("REMIT_HOME", "/x")
    assert default_home() == Path("/x")
