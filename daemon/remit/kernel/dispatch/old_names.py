"""Old names that callers still use: told in each answer, and in the log once for each caller."""

from typing import Literal

import structlog

log = structlog.get_logger()

Kind = Literal["event", "capability"]
_MOST = 10_000
"""Uses that are remembered; after that the log is told anew."""


class OldNames:
    """Remembers who was written down with which name."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._logged: set[tuple[str, Kind, str]] = set()

    def note(self, principal: str, kind: Kind, old: str, new: str) -> dict[str, str]:
        """Take note of a use; answers the warning for the one who used it."""
        use = (principal, kind, old)
        if use not in self._logged:
            if len(self._logged) >= _MOST:
                self._logged.clear()
            self._logged.add(use)
            log.warning("old_name_used", principal=principal, kind=kind, old=old, new=new)
        message = f"{old!r} is an old name of the {kind} {new!r}"
        return {"code": "old_name", "message": message, "hint": f"write {new!r}"}
