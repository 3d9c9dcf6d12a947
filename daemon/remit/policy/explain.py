"""Why a profile may or may not use an event, rule by rule, each with its place.

Computed from the rules themselves and not from the mask; a property test holds the two together.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from remit.errors import REQUEST, Place
from remit.model.capability import Capability
from remit.model.composition import Scalar
from remit.model.event import Reason
from remit.model.names import EventName
from remit.policy.catalogue import Catalogue
from remit.policy.checks import layer_of
from remit.policy.layers import Layer
from remit.policy.queries import (
    NearMiss,
    Obstacle,
    Repair,
    bit_of,
    near_misses,
    obstacles_to,
    repair_of,
)
from remit.policy.resolve import (
    RefusalPatterns,
    gated_capabilities,
    hold,
    refusals,
)


class PermissionRule(msgspec.Struct, frozen=True):
    """One rule that speaks for or against an event."""

    pattern: str
    place: Place
    capability: str | None = None
    path: tuple[str, ...] = ()
    """How the profile holds the capability: the line that switches one on, then requires."""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        place = {"file": self.place.file, "line": self.place.line, "column": self.place.column}
        return {
            "capability": self.capability,
            "path": list(self.path),
            "pattern": self.pattern,
            **place,
        }


class Explanation(msgspec.Struct, frozen=True):
    """The whole answer to "why"."""

    subject: str
    event: str
    allowed: bool
    reason: Reason
    granted_by: tuple[PermissionRule, ...]
    denied_by: tuple[PermissionRule, ...]
    pending: tuple[str, ...]
    near_misses: tuple[NearMiss, ...]
    revision: int
    causes: tuple[Obstacle, ...] = ()
    repair: Repair | None = None

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        return {
            "allowed": self.allowed,
            "reason": self.reason,
            "subject": self.subject,
            "event": self.event,
            "revision": self.revision,
            "granted_by": [rule.to_json() for rule in self.granted_by],
            "denied_by": [rule.to_json() for rule in self.denied_by],
            "pending_review": list(self.pending),
            "near_misses": [msgspec.structs.asdict(miss) for miss in self.near_misses],
            "causes": [cause.to_json() for cause in self.causes],
            "repair": msgspec.structs.asdict(self.repair) if self.repair else None,
        }


def explain(
    catalogue: Catalogue, profile: str, event: str, variables: Mapping[str, Scalar] | None = None
) -> Explanation:
    """Explain a decision about an event in a profile."""
    layer, _ = layer_of(catalogue, profile, variables or {})
    return explain_layer(catalogue, profile, layer, event)


def explain_layer(
    catalogue: Catalogue,
    profile: str,
    layer: Layer,
    event: str,
    reviewed: frozenset[str] = frozenset(),
) -> Explanation:
    """Explain a decision from rules that have been merged already."""
    name = catalogue.universe.canonical(event)
    exists = name in catalogue.universe.index
    gated = frozenset(gated_capabilities(catalogue, profile, reviewed))
    held = hold(catalogue, profile, layer, reviewed)
    granted_by: tuple[PermissionRule, ...] = ()
    if exists:
        granted_by = _capability_rules(catalogue, profile, layer, name, held.active)
        if granted_by or not _is_gated(catalogue, gated, name):
            granted_by += _added_rules(catalogue, layer, name)
    denied_by = _deny_rules(catalogue, layer, name)
    refused = refusals(catalogue, layer, held, gated)
    is_given = granted_by and catalogue.universe.lets_through(layer.max_effect, name)
    above = () if is_given else _ceiling(layer, refused, name)
    pending = () if granted_by else _pending(catalogue, held.pending, gated, layer, name)
    reason: Reason = "explicit_deny" if denied_by else "granted" if exists else "unknown_event"
    if reason == "granted" and (above or not granted_by):
        reason = refused.reason(EventName(name))
    is_missing = exists and reason == "no_grant"
    return Explanation(
        subject=profile,
        event=name,
        allowed=reason == "granted",
        reason=reason,
        granted_by=granted_by,
        denied_by=(*denied_by, *above),
        pending=pending,
        near_misses=near_misses(catalogue, profile, name) if is_missing or not exists else (),
        revision=catalogue.revision,
        causes=obstacles_to(catalogue, layer, name) if is_missing or (above and exists) else (),
        repair=repair_of(catalogue, profile, name) if is_missing else None,
    )


def _ceiling(layer: Layer, refused: RefusalPatterns, event: str) -> tuple[PermissionRule, ...]:
    """The line that says `max_effect`; by patterns alone, as denials speak of what is not there."""
    ceiling = layer.max_effect
    is_capped = any(pattern.covers(EventName(event)) for pattern in refused.capped)
    return (PermissionRule(str(ceiling), ceiling.place),) if ceiling and is_capped else ()


def _capability_rules(
    catalogue: Catalogue, profile: str, layer: Layer, event: str, active: tuple[str, ...]
) -> tuple[PermissionRule, ...]:
    paths = _paths(catalogue, profile, layer, set(active))
    rules = []
    for name in active:
        if name in catalogue.runtime_capabilities:
            continue  # what it gives depends on its author, and not on a profile
        for pattern, place in _covering(catalogue, catalogue.capabilities[name], event):
            rules.append(PermissionRule(pattern, place, name, paths[name]))
    return tuple(rules)


def _covering(
    catalogue: Catalogue, definition: Capability, event: str
) -> Iterable[tuple[str, Place]]:
    spec = catalogue.universe.specs[event]
    if definition.event_patterns is None:
        if catalogue.names.get(spec.capability or "") == definition.id:
            yield event, spec.place or definition.place
        return
    for placed in definition.event_patterns:
        pattern = placed.pattern
        old_name = pattern.exact and catalogue.universe.canonical(pattern.prefix) == event
        if old_name or (pattern.covers(event) and (pattern.exact or spec.wildcard)):
            yield str(pattern), placed.place


def _paths(
    catalogue: Catalogue, profile: str, layer: Layer, active: set[str]
) -> dict[str, tuple[str, ...]]:
    """How each active capability is reached: the line that switches one on, then requires."""
    paths: dict[str, tuple[str, ...]] = {
        root: (*_switch(catalogue, profile, layer, root), root)
        for root in catalogue.roots(layer.flags)
        if root in active
    }
    frontier = list(paths)
    for name in frontier:  # grows while it is walked: breadth first
        for ref in catalogue.capabilities[name].requires:
            required = catalogue.names[ref.name]
            if required in active and required not in paths:
                paths[required] = (*paths[name], required)
                frontier.append(required)
    return paths


def _switch(catalogue: Catalogue, profile: str, layer: Layer, root: str) -> tuple[str, ...]:
    """The line that switches a capability on, by the names that people gave: `lead`, `boss:4`."""
    flag = layer.flags.get(root)
    if flag is None:  # it is always included
        return (profile,) if profile else ()
    writer = next(
        (one for one in catalogue.lineages.get(profile, ()) if one.place.file == flag.place.file),
        None,
    )
    line = f"{writer.name if writer else flag.place.file}:{flag.place.line}"
    if flag.place == REQUEST:
        line = "request"
    is_own = writer is not None and writer.name == profile
    return (line,) if is_own or not profile else (profile, line)


def _added_rules(catalogue: Catalogue, layer: Layer, event: str) -> tuple[PermissionRule, ...]:
    spec = catalogue.universe.specs[event]
    rules = []
    for entry in layer.allowed:
        pattern = entry.pattern
        if pattern is None:
            continue
        named = pattern.exact and catalogue.universe.canonical(pattern.prefix) == event
        if named or (not pattern.exact and spec.wildcard and pattern.covers(event)):
            rules.append(PermissionRule(entry.text, entry.place))
    return tuple(rules)


def _deny_rules(catalogue: Catalogue, layer: Layer, event: str) -> tuple[PermissionRule, ...]:
    spec = catalogue.universe.specs.get(event)
    names = (event, *(spec.aliases if spec else ()))
    return tuple(
        PermissionRule(entry.text, entry.place)
        for entry in layer.disallowed
        if entry.pattern and any(entry.pattern.covers(name) for name in names)
    )


def _is_gated(catalogue: Catalogue, gated: Iterable[str], event: str) -> bool:
    """Tell whether an unapproved capability holds this event."""
    return event in catalogue.universe.index and any(
        any(_covering(catalogue, catalogue.capabilities[name], event)) for name in gated
    )


def _pending(
    catalogue: Catalogue, held: Iterable[str], gated: Iterable[str], layer: Layer, event: str
) -> tuple[str, ...]:
    """The reviews that the event waits for: of what the profile holds, or names in a list.

    By patterns alone, as in `decide.refusal`: the answer must not tell which events exist.
    """
    waiting = {name: catalogue.closures[name] for name in held}
    listed = (catalogue.universe.present(entry.pattern) for entry in layer.allowed if entry.pattern)
    if any(pattern.covers(event) for pattern in listed):
        waiting = {name: (name,) for name in gated} | waiting
    return tuple(
        name
        for name, parts in sorted(waiting.items())
        if any(_speaks_of(catalogue, part, event) for part in parts)
    )


def _speaks_of(catalogue: Catalogue, name: str, event: str) -> bool:
    definition = catalogue.capabilities[name]
    if definition.event_patterns is None:
        return event in catalogue.universe.names_in(catalogue.own_events[name])
    patterns = (catalogue.universe.present(placed.pattern) for placed in definition.event_patterns)
    return any(pattern.covers(event) for pattern in patterns)


def runtime_rules(catalogue: Catalogue, name: str, event: str) -> list[PermissionRule]:
    """The rules by which a capability that was made at run time covers an event."""
    runtime, bit = catalogue.runtime_capabilities[name], bit_of(catalogue, event)
    rules = [
        PermissionRule(str(placed), runtime.capability.place, name, (name,))
        for placed in runtime.capability.event_patterns or ()
        if catalogue.universe.granted_by(placed.pattern) & bit
    ]
    return rules + [
        PermissionRule(event, catalogue.capabilities[member].place, name, (name, member))
        for member in runtime.members
        if catalogue.own_events[member] & bit
    ]
