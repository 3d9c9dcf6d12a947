"""Which definitions a running daemon was started with, so that commands beside it mean the same."""

from pathlib import Path

import msgspec

from remit.config.home import Home
from remit.config.lock import running_pid
from remit.config.settings import Origin, Settings
from remit.errors import HomeError

_SHARED = ("catalogue", "compositions", "handlers", "handler_paths")


class Served(msgspec.Struct, frozen=True):
    """The settings of a daemon that decide what its definitions mean."""

    catalogue: str | None
    compositions: str | None
    handlers: tuple[str, ...]
    handler_paths: tuple[str, ...]


def remember_served(home: Home, settings: Settings) -> None:
    """Write down what this daemon serves.

    Raises:
        HomeError: it cannot be written; commands beside the daemon would mean something else.
    """
    served = Served(
        _text(settings.catalogue),
        _text(settings.compositions),
        settings.handlers,
        tuple(str(path.absolute()) for path in settings.handler_paths),
    )
    try:
        home.served.write_bytes(msgspec.json.encode(served))
    except OSError as error:
        message = f"{home.served} cannot be written: {error.strerror or error}"
        raise HomeError(message, hint="make room there, or choose another --home") from error


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def as_served(settings: Settings) -> Settings:
    """The settings with what nobody set taken from the daemon that runs in this home."""
    home = Home(settings.home)
    if any(settings.origins[name].kind != "default" for name in _SHARED):
        return settings
    if not home.served.exists() or running_pid(home) is None:
        return settings
    try:
        served = msgspec.json.decode(home.served.read_bytes(), type=Served)
    except (OSError, msgspec.MsgspecError):
        return settings
    origin = Origin("file", str(home.served))
    return msgspec.structs.replace(
        settings,
        catalogue=Path(served.catalogue) if served.catalogue else None,
        compositions=Path(served.compositions) if served.compositions else None,
        handlers=served.handlers,
        handler_paths=tuple(map(Path, served.handler_paths)),
        origins={**settings.origins, **dict.fromkeys(_SHARED, origin)},
    )
