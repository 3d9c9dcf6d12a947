"""What to start for an agent."""

from typing import Literal

import msgspec

MAX_RESTARTS = 5


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command without a shell, and what to do when it ends."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    restart: Literal["never", "on_failure", "always"] = "never"
    max_restarts: int = MAX_RESTARTS
