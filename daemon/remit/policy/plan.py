"""What an edit would grant and take away, for whom."""

import itertools
from collections.abc import Mapping
from typing import Any

import msgspec

from remit.model.grant import Grant
from remit.model.launch import NO_LAUNCH, Launch
from remit.model.limits import Effect, is_looser, is_wider

MOST_AGENTS = 1_000
"""How many agents an answer names; the summary counts all of them."""

_NOBODY = Grant(profile="", revision=0, bits=0, events=frozenset())


class GrantChange(msgspec.Struct, frozen=True):
    """The difference between two grants of one profile. Every list is sorted."""

    granted: tuple[str, ...]
    revoked: tuple[str, ...]
    tools_granted: tuple[str, ...]
    tools_revoked: tuple[str, ...]
    limits_changed: dict[str, list[Any]]
    """Each changed limit with its value before and after; None is "no limit"."""
    approval_added: tuple[str, ...] = ()
    """Events whose every call now waits for an operator's yes."""
    approval_removed: tuple[str, ...] = ()
    """Events that are still held, and from now on without asking anybody."""
    tools_shown: tuple[str, ...] = ()
    """Events that are tools from now on, held before or not."""
    tools_hidden: tuple[str, ...] = ()
    """Events that are no tools any more, still held or not."""
    tools_changed: tuple[str, ...] = ()
    """Events that are tools before and after, with another name or description."""
    exposure_changed: tuple[str, ...] = ()
    """Which of the tools are listed at once, before and after, when that differs."""
    pinned_added: tuple[str, ...] = ()
    """Events that are listed whatever the exposure."""
    pinned_removed: tuple[str, ...] = ()
    trust_changed: tuple[bool, ...] = ()
    """Whether what its holders teach discovery counts for everybody, before and after."""
    max_effect_changed: tuple[Effect | None, ...] = ()
    """How much its events may do at the most, before and after, when that differs."""
    review_added: tuple[str, ...] = ()
    """Capabilities that now wait for a security review."""
    review_removed: tuple[str, ...] = ()
    denied_added: tuple[str, ...] = ()
    """Denials of what was not held anyway: no agent of the profile can be given it any more."""
    denied_removed: tuple[str, ...] = ()
    launcher_changed: tuple[dict[str, Any] | None, ...] = ()
    """What the profile starts before and after, when that differs; variables without values."""

    @property
    def widens(self) -> bool:
        """Tell whether anybody gets more than before, or could be given more."""
        gains = (self.granted, self.tools_granted, self.approval_removed, self.denied_removed)
        is_trusted = bool(self.trust_changed) and self.trust_changed[1]
        return any(gains) or self._raised or self._loosened or is_trusted

    @property
    def _loosened(self) -> bool:
        return bool(self.max_effect_changed) and is_looser(*self.max_effect_changed)

    @property
    def _raised(self) -> bool:
        return any(is_wider(before, after) for before, after in self.limits_changed.values())

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing changes."""
        return not any(msgspec.structs.astuple(self))


NO_CHANGE = GrantChange((), (), (), (), {})


class AgentChange(msgspec.Struct, frozen=True):
    """The difference between what a living agent holds before and after."""

    change: GrantChange
    profile: str = ""
    parent: str | None = None
    is_bereft: bool = False
    """Whether its profile is defined no more: it keeps what everybody has."""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        return {
            "profile": self.profile,
            "parent": self.parent,
            "profile_removed": self.is_bereft,
            **msgspec.structs.asdict(self.change),
        }


class Plan(msgspec.Struct, frozen=True):
    """All changes, of profiles and of living agents: those that get more first, then by name."""

    changes: dict[str, GrantChange]
    unchanged: int
    agent_changes: dict[str, AgentChange] = {}

    @property
    def agents(self) -> int:
        """How many living agents hold more, less or under other limits."""
        return len(self.agent_changes)

    @property
    def widens(self) -> bool:
        """Tell whether anybody gets more than before, or could be given more."""
        changes = (*self.changes.values(), *(one.change for one in self.agent_changes.values()))
        return any(change.widens for change in changes)

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read; the summary comes last."""
        agents = self.agent_changes
        shown = dict(itertools.islice(agents.items(), MOST_AGENTS))
        left_out = {"agents_left_out": len(agents) - len(shown)} if len(shown) < self.agents else {}
        return {
            "profiles": {
                name: msgspec.structs.asdict(change) for name, change in self.changes.items()
            },
            "agents": {name: one.to_json() for name, one in shown.items()},
            **left_out,
            "summary": {
                "granted": sum(len(change.granted) for change in self.changes.values()),
                "revoked": sum(len(change.revoked) for change in self.changes.values()),
                "tools_granted": sum(len(c.tools_granted) for c in self.changes.values()),
                "tools_revoked": sum(len(c.tools_revoked) for c in self.changes.values()),
                "approval_removed": sum(len(c.approval_removed) for c in self.changes.values()),
                "profiles": len(self.changes),
                "agents": self.agents,
                "agents_widened": sum(one.change.widens for one in agents.values()),
                "unchanged": self.unchanged,
            },
        }


def plan(
    before: Mapping[str, Grant],
    after: Mapping[str, Grant],
    *,
    agents: Mapping[str, AgentChange] | None = None,
    altered: frozenset[str] = frozenset(),
) -> Plan:
    """Compare the grants of two revisions; a missing profile grants nothing.

    `agents` are those for whom something changes, in their order; `altered` are the events whose
    tools are described otherwise.
    """
    changes = {
        name: _compare_profiles(before.get(name, _NOBODY), after.get(name, _NOBODY), altered)
        for name in {*before, *after}
    }
    changed = {name: change for name, change in changes.items() if not change.is_empty}
    order = sorted(changed, key=lambda name: (not changed[name].widens, name))
    found = {name: changed[name] for name in order}
    return Plan(found, len(changes) - len(changed), dict(agents or {}))


def compare(before: Grant, after: Grant, altered: frozenset[str] = frozenset()) -> GrantChange:
    """What changes for somebody who holds one grant and then the other.

    Only what the holder may know: each name is one that it may use before or after. `altered` are
    the events whose tools are described otherwise.
    """
    old, new = before.limits, after.limits
    names = [n for n in old.__struct_fields__ if getattr(old, n) != getattr(new, n)]
    exist = before.revision and after.revision  # nobody's grant belongs to no revision
    modes = (before.exposure, after.exposure)
    return GrantChange(
        granted=tuple(sorted(after.events - before.events)),
        revoked=tuple(sorted(before.events - after.events)),
        tools_granted=tuple(sorted(after.claude_tools - before.claude_tools)),
        tools_revoked=tuple(sorted(before.claude_tools - after.claude_tools)),
        limits_changed={n: [getattr(old, n), getattr(new, n)] for n in names} if exist else {},
        approval_added=tuple(sorted(after.approval_required - before.approval_required)),
        approval_removed=tuple(
            sorted((before.approval_required - after.approval_required) & after.events)
        ),
        tools_shown=tuple(sorted(after.exposed - before.exposed)),
        tools_hidden=tuple(sorted(before.exposed - after.exposed)),
        tools_changed=tuple(sorted(altered & before.exposed & after.exposed)),
        exposure_changed=modes if exist and before.exposure != after.exposure else (),
        # Where everything is listed anyway, a pin changes no list.
        pinned_added=_beyond(after, before) if modes != ("all", "all") else (),
        pinned_removed=_beyond(before, after) if modes != ("all", "all") else (),
    )


def _beyond(one: Grant, other: Grant) -> tuple[str, ...]:
    """What one pins and the other does not, sorted."""
    return tuple(sorted(one.pinned - other.pinned))


def _compare_profiles(before: Grant, after: Grant, altered: frozenset[str]) -> GrantChange:
    """What changes for a profile, with what holds back or could be given to its agents."""
    change = compare(before, after, altered)
    waited, waits = set(before.pending_review), set(after.pending_review)
    old = {*before.denied_events, *before.denied_tools}
    new = {*after.denied_events, *after.denied_tools}
    exist = before.revision and after.revision
    ceilings = (before.max_effect, after.max_effect)
    return msgspec.structs.replace(
        change,
        review_added=tuple(sorted(waits - waited)),
        review_removed=tuple(sorted(waited - waits)),
        # What a denial took or gave back is told already.
        denied_added=tuple(sorted(new - old - {*change.revoked, *change.tools_revoked}))
        if exist
        else (),
        denied_removed=tuple(sorted(old - new - {*change.granted, *change.tools_granted}))
        if exist
        else (),
        max_effect_changed=ceilings if exist and ceilings[0] != ceilings[1] else (),
        trust_changed=(before.trusted, after.trusted) if before.trusted != after.trusted else (),
        launcher_changed=_launchers(before, after),
        pinned_added=_beyond(after, before),
        pinned_removed=_beyond(before, after),
    )


def _launchers(before: Grant, after: Grant) -> tuple[dict[str, Any] | None, ...]:
    old, new = (grant.launcher.launch if grant.launcher else NO_LAUNCH for grant in (before, after))
    return () if old == new else (_shown(old), _shown(new))


def _shown(launch: Launch) -> dict[str, Any] | None:
    """What was written; a value in the environment may be nobody else's business."""
    if not launch.starts:
        return None
    fields = msgspec.structs.asdict(launch) | {"env": sorted(launch.env)}
    return {name: value for name, value in fields.items() if value not in ("", (), [], None)}
