"""A denial, as the audit is told of it, and how many of them one of its rows stands for."""

from typing import Any

import msgspec


class Denial(msgspec.Struct, frozen=True):
    """What was denied to whom.

    Denials of one `group` are repeats of each other; `item` is what may differ between them. Both
    are the event when they are empty.
    """

    principal: str
    event: str
    reason: str
    details: dict[str, Any] = {}
    group: str = ""
    item: str = ""


def decisions_of(outcome: str, details: dict[str, Any]) -> int:
    """How many decisions a row stands for: that of repeated denials for more than one."""
    count = details.get("count", 1) if outcome == "denied" else 1
    return count if isinstance(count, int) else 1
