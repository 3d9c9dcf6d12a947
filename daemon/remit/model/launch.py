"""What to start for an agent: as a request or a profile says it."""

from typing import Literal

import msgspec

from remit.model.place import Place

MAX_RESTARTS = 5

Restart = Literal["never", "on_failure", "always"]
RESTARTS: tuple[Restart, ...] = ("never", "on_failure", "always")

SETTABLE = r"(?!REMIT_|LD_)[A-Za-z_][A-Za-z0-9_]{0,127}"
"""The variables that a launch may set: neither who the process is, nor what it loads."""

Ready = Literal["", "claude"]
READY: dict[str, str] = {"claude": "claude"}
"""The ready launchers, each with the command that it starts."""


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command without a shell, and what to do when it ends.

    `ready` names a launcher that works out further arguments by itself. Without either there is
    nothing to start, and a request says so with an empty object.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    restart: Restart = "never"
    max_restarts: int = MAX_RESTARTS
    ready: Ready = ""

    @property
    def starts(self) -> str:
        """The command that is started, or nothing."""
        return READY.get(self.ready, "") if self.ready else self.command


NOTHING = Launch()


class PlacedLaunch(msgspec.Struct, frozen=True):
    """What a profile starts once its variables have values, and where that is written."""

    launch: Launch
    place: Place
