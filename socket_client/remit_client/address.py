"""Where the daemon is and who is calling: from arguments, the environment or the home."""

import os
from pathlib import Path

import msgspec

from remit_client.errors import BadKey, Unreachable
from remit_client.keys import Key, is_z85_key, load_key, load_server_key

SERVE_HINT = "start the daemon with: remit serve"


class Address(msgspec.Struct, frozen=True):
    """All that is needed to connect."""

    endpoint: str
    server_key: str
    key: Key


def default_home() -> Path:
    """The state directory: `REMIT_HOME`, else the XDG state directory."""
    if home := os.environ.get("REMIT_HOME"):
        return Path(home)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "remit"


def find_address(
    home: str | Path | None = None, endpoint: str | None = None, key: str | Path | Key | None = None
) -> Address:
    """Put an address together; what is said in the call beats the environment.

    Raises:
        Unreachable: nothing says where the daemon is.
        BadKey: a key is missing or cannot be used.
    """
    folder = Path(home) if home is not None else default_home()
    given = home is not None
    loaded = load_key(key) if isinstance(key, str | Path) else key
    place = endpoint or _endpoint(folder, loaded, given=given)
    if loaded is None:
        from_environment = None if given else os.environ.get("REMIT_KEY")
        loaded = load_key(from_environment or folder / "operator.key")
        if not from_environment and place == _endpoint_file(folder):
            place = _door_of_operator(folder) or place
    return Address(place, _server_key(folder, loaded, given=given), loaded)


def _endpoint(folder: Path, key: Key | None, *, given: bool) -> str:
    """A home that was named in the call knows best; otherwise whoever gave out the key."""
    here = _endpoint_file(folder)
    if given and here:
        return here
    if key is not None and key.endpoint:
        return key.endpoint
    if not given and (text := os.environ.get("REMIT_ENDPOINT")):
        return text
    if here:
        return here
    if not given and (path := os.environ.get("REMIT_KEY")) and (text := load_key(path).endpoint):
        return text
    raise Unreachable(f"no daemon is running in {folder}", hint=SERVE_HINT)


def _endpoint_file(folder: Path) -> str:
    try:
        return (folder / "endpoint").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _door_of_operator(folder: Path) -> str:
    """The socket that a daemon of this home keeps for its operator, when others fill the first."""
    door = (folder / "op.sock").absolute()
    return f"ipc://{door}" if door.is_socket() else ""


def _server_key(folder: Path, key: Key, *, given: bool) -> str:
    beside = folder / "server.pub"
    # From where the endpoint came: a daemon elsewhere has another key.
    if given and beside.exists() and (_endpoint_file(folder) or not key.server_key):
        return load_server_key(beside)
    text = key.server_key or ("" if given else os.environ.get("REMIT_SERVER_KEY", ""))
    if not text:
        return load_server_key(beside)
    if not is_z85_key(text):
        raise BadKey("REMIT_SERVER_KEY is not a Z85 public key", hint="copy it from server.pub")
    return text
