"""The keys of an installation: the server's own, and the operator's."""

from pathlib import Path

import msgspec

from remit.config.home import Home
from remit.errors import HomeError
from remit.model.principal import OPERATOR_ID
from remit_client.errors import BadKey
from remit_client.keys import Key, load_key, new_key, save_key


class Keys(msgspec.Struct, frozen=True):
    """What the daemon needs of its keys: its own secret, and the public half of the operator's."""

    server_secret: str
    server_public: str
    operator_public: str


def first_keys(home: Home) -> Keys:
    """The keys of this home; missing ones are made, so the first start just works.

    Raises:
        HomeError: a key cannot be read or written, or the public key beside the server's is
            another one's.
    """
    server = _key(home.server_key, "server")
    public = home.server_public_key
    if not public.exists():
        _write(public, server.public_key + "\n")
    if public.read_text(encoding="ascii").strip() != server.public_key:
        raise HomeError(
            f"{public} does not belong to {home.server_key}",
            hint=f"rm {public}; it is made again at the next start",
        )
    operator = _key(home.operator_key, OPERATOR_ID)
    return Keys(server.secret_key, server.public_key, operator.public_key)


def _key(path: Path, name: str) -> Key:
    try:
        if path.exists():
            return load_key(path)
        key = new_key(name)
        save_key(path, key)
    except BadKey as error:
        raise HomeError(
            error.message, hint=error.hint or f"restore {path} from a backup"
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    return key


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="ascii")
        path.chmod(0o644)  # whatever the umask: others may read it, and no more
    except OSError as error:
        path.unlink(missing_ok=True)  # an empty one would be taken for another server's
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> HomeError:
    message = f"{path} cannot be written: {error.strerror or error}"
    return HomeError(message, hint="make room, or choose another home with --home")
