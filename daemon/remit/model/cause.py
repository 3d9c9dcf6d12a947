"""Why a configuration comes in force, or is refused."""

from typing import Literal

import msgspec

from remit.model.principal import DAEMON_ID


class Cause(msgspec.Struct, frozen=True):
    """Why there is another revision, and who wanted it."""

    what: Literal[
        "files_edited",
        "signal",
        "requested",
        "started",
        "reviewed",
        "events_changed",
        "capability_made",
    ]
    by: str = DAEMON_ID
    decision: str = ""
    """The decision that let somebody ask for it."""
