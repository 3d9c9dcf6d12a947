"""Key files: who a client is."""

import os
import re
import stat
from pathlib import Path

import msgspec

from remit_client.errors import BadKey

_Z85_KEY = re.compile(r"[0-9a-zA-Z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Key(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A client's CURVE key pair, in Z85; `server_key` and `endpoint` say whom to talk to."""

    name: str
    public_key: str
    secret_key: str
    server_key: str = ""
    endpoint: str = ""

    def __repr__(self) -> str:
        # Keys end up in logs and tracebacks; the secret must not.
        return f"Key(name={self.name!r}, public_key={self.public_key!r})"


def is_z85_key(text: str) -> bool:
    """Tell whether `text` can be a CURVE key."""
    return _Z85_KEY.fullmatch(text) is not None


def new_key(name: str, *, server_key: str = "", endpoint: str = "") -> Key:
    """Make a fresh key pair."""
    import zmq  # noqa: PLC0415  reading a key file must not cost the 26 ms of libzmq

    public, secret = zmq.curve_keypair()
    return Key(name, public.decode(), secret.decode(), server_key, endpoint)


def load_key(path: str | Path) -> Key:
    """Read a key file.

    Raises:
        BadKey: it is missing, readable for others, or no key file.
    """
    place = Path(path)
    try:
        found = place.stat()
        text = place.read_bytes()
    except OSError as error:
        hint = "make one with: remit key new NAME --profile PROFILE"
        raise BadKey(f"{place}: {error.strerror}", hint=hint) from error
    _check_owner(place, found)
    if found.st_mode & _OTHERS:
        raise BadKey(f"{place}: others may read this key", hint=f"run: chmod 600 {place}")
    try:
        key = msgspec.json.decode(text, type=Key)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        hint = 'it is JSON: {"name": …, "public_key": …, "secret_key": …}'
        raise BadKey(f"{place}: not a key file: {error}", hint=hint) from error
    _check(place, key)
    return key


def save_key(path: str | Path, key: Key) -> None:
    """Write a key file that only its owner can read; a crash leaves the old one or the new one."""
    place = Path(path)
    draft = place.with_name(f".{place.name}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(key) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def load_server_key(path: str | Path) -> str:
    """Read the one line of `server.pub`.

    Raises:
        BadKey: it is missing, or no key.
    """
    place = Path(path)
    try:
        found = place.stat()
        text = place.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadKey(f"{place}: {error}", hint="start the daemon once: remit serve") from error
    _check_owner(place, found)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        message = f"{place}: others may have changed it"
        raise BadKey(message, hint=f"compare it with the daemon's, then: chmod go-w {place}")
    if not is_z85_key(text):
        raise BadKey(f"{place}: not a Z85 public key", hint="start the daemon once: remit serve")
    return text


def _check_owner(place: Path, found: os.stat_result) -> None:
    """Refuse a key that another user made, who may know or choose what it opens."""
    me = os.geteuid()
    if found.st_uid not in (me, 0):
        message = f"{place}: belongs to user {found.st_uid}, but this is user {me}"
        raise BadKey(message, hint=f"sudo chown {me} {place}, if you know whose it is")


def _check(place: Path, key: Key) -> None:
    for field in ("public_key", "secret_key", "server_key"):
        text = getattr(key, field)
        optional = field == "server_key"
        if not is_z85_key(text) and not (optional and not text):
            message = f"{place}: {field} has {len(text)} characters and is no Z85 key"
            raise BadKey(message, hint="a key has 40 characters: make a new one with remit key new")
