"""What an edit would grant and take away, for whom."""

from collections.abc import Mapping
from typing import Any

import msgspec

from remit.model.grant import Grant
from remit.model.limits import is_wider

_NOBODY = Grant(profile="", revision=0, bits=0, events=frozenset())


class Change(msgspec.Struct, frozen=True):
    """The difference between two grants of one profile. Every list is sorted."""

    granted: tuple[str, ...]
    revoked: tuple[str, ...]
    tools_granted: tuple[str, ...]
    tools_revoked: tuple[str, ...]
    limits_changed: dict[str, list[Any]]
    """Each changed limit with its value before and after; None is "no limit"."""

    @property
    def widens(self) -> bool:
        """Tell whether anybody gets more than before."""
        return bool(self.granted or self.tools_granted or self._raised)

    @property
    def _raised(self) -> bool:
        return any(is_wider(before, after) for before, after in self.limits_changed.values())

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing changes."""
        return not (
            self.granted
            or self.revoked
            or self.tools_granted
            or self.tools_revoked
            or self.limits_changed
        )


class Plan(msgspec.Struct, frozen=True):
    """All changes, profiles that get more first, then by name."""

    changes: dict[str, Change]
    unchanged: int
    agents: int = 0
    """How many living agents hold more, less or under other limits."""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read; the summary comes last."""
        return {
            "profiles": {
                name: msgspec.structs.asdict(change) for name, change in self.changes.items()
            },
            "summary": {
                "granted": sum(len(change.granted) for change in self.changes.values()),
                "revoked": sum(len(change.revoked) for change in self.changes.values()),
                "tools_granted": sum(len(c.tools_granted) for c in self.changes.values()),
                "tools_revoked": sum(len(c.tools_revoked) for c in self.changes.values()),
                "profiles": len(self.changes),
                "agents": self.agents,
                "unchanged": self.unchanged,
            },
        }


def plan(before: Mapping[str, Grant], after: Mapping[str, Grant], *, agents: int = 0) -> Plan:
    """Compare the grants of two revisions; a missing profile grants nothing."""
    changes = {
        name: compare(before.get(name, _NOBODY), after.get(name, _NOBODY))
        for name in {*before, *after}
    }
    changed = {name: change for name, change in changes.items() if not change.is_empty}
    order = sorted(changed, key=lambda name: (not changed[name].widens, name))
    return Plan({name: changed[name] for name in order}, len(changes) - len(changed), agents)


def compare(before: Grant, after: Grant) -> Change:
    """The difference between two grants."""
    old, new = before.limits, after.limits
    names = [n for n in old.__struct_fields__ if getattr(old, n) != getattr(new, n)]
    exist = before.revision and after.revision  # nobody's grant belongs to no revision
    return Change(
        granted=tuple(sorted(after.events - before.events)),
        revoked=tuple(sorted(before.events - after.events)),
        tools_granted=tuple(sorted(after.claude_tools - before.claude_tools)),
        tools_revoked=tuple(sorted(before.claude_tools - after.claude_tools)),
        limits_changed={n: [getattr(old, n), getattr(new, n)] for n in names} if exist else {},
    )
