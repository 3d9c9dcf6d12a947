"""What a look at an installation finds, and what the running daemon says when it is asked."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from remit.config.settings.table import Settings

State = Literal["fine", "warning", "broken"]


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    state: State
    message: str
    repair: str = ""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        return msgspec.structs.asdict(self)


def ask_daemon(settings: Settings, event: str) -> Any:
    """The answer of the daemon of this home to its operator.

    Raises:
        RemitError: of the client: it is not there, or does not let us in.
    """
    import remit_client.sync  # noqa: PLC0415 - zmq, only when a daemon runs

    with remit_client.sync.connect(home=str(settings.home)) as remit:
        return remit.call(event, timeout=5)


def told_by_daemon(settings: Settings, event: str) -> Any:
    """The same, or None when it does not answer: the look at the socket tells why."""
    from remit_client.errors import RemitError as ClientError  # noqa: PLC0415 - see above

    try:
        return ask_daemon(settings, event)
    except ClientError:
        return None


def nearest_there(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    return next(one for one in (path, *path.parents) if one.exists())
