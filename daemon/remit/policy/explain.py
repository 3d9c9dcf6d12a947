"""Why a profile may or may not use an event, rule by rule, each with its place.

Computed from the rules themselves and not from the mask; a property test holds the two together.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from remit.model.agent import AgentSpec
from remit.model.capability import Capability
from remit.model.composition import Scalar
from remit.model.decision import Reason
from remit.model.place import Place
from remit.model.suggest import nearest
from remit.policy.catalogue import Catalogue
from remit.policy.compiler import layer_of
from remit.policy.delegate import agent_layer
from remit.policy.flatten import Layer
from remit.policy.resolve import chosen, gated_capabilities, hold

_NEAR = 5


class Rule(msgspec.Struct, frozen=True):
    """One rule that speaks for or against an event."""

    pattern: str
    place: Place
    capability: str | None = None
    path: tuple[str, ...] = ()
    """How the profile comes to hold the capability: a chain of requires."""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        place = {"file": self.place.file, "line": self.place.line, "column": self.place.column}
        return {
            "capability": self.capability,
            "path": list(self.path),
            "pattern": self.pattern,
            **place,
        }


class NearMiss(msgspec.Struct, frozen=True):
    """Something that would have been allowed, or a capability that would have given it."""

    event: str
    capability: str | None


class Explanation(msgspec.Struct, frozen=True):
    """The whole answer to "why"."""

    subject: str
    event: str
    allowed: bool
    reason: Reason
    granted_by: tuple[Rule, ...]
    denied_by: tuple[Rule, ...]
    pending: tuple[str, ...]
    near_misses: tuple[NearMiss, ...]
    revision: int

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
        }


def explain(
    catalogue: Catalogue, profile: str, event: str, variables: Mapping[str, Scalar] | None = None
) -> Explanation:
    """Explain a decision about an event in a profile."""
    layer, _ = layer_of(catalogue, profile, variables or {})
    return explain_layer(catalogue, profile, layer, event)


def explain_agent(catalogue: Catalogue, spec: AgentSpec, event: str) -> Explanation:
    """Explain a decision about an event in the profile and the changes of an agent.

    What its ancestors cut is not looked at.

    Raises:
        RemitError: the profile is gone, or does not fit the changes any more.
    """
    layer, _ = agent_layer(catalogue, spec, lives=True)
    return explain_layer(catalogue, spec.profile, layer, event)


def explain_layer(catalogue: Catalogue, profile: str, layer: Layer, event: str) -> Explanation:
    """Explain a decision from rules that have been merged already."""
    name = catalogue.universe.canonical(event)
    exists = name in catalogue.universe.index
    by_capability = _capability_rules(catalogue, profile, layer, name) if exists else ()
    added = _added_rules(catalogue, layer, name) if exists else ()
    gated = not by_capability and _is_gated(catalogue, profile, name)
    granted_by = (*by_capability, *(() if gated else added))
    denied_by = _deny_rules(catalogue, layer, name)
    pending = () if granted_by else _pending(catalogue, profile, layer, name)
    reason: Reason = "granted"
    if denied_by:
        reason = "explicit_deny"
    elif not exists:
        reason = "unknown_event"
    elif not granted_by:
        reason = "review_pending" if pending else "no_grant"
    return Explanation(
        subject=profile,
        event=name,
        allowed=reason == "granted",
        reason=reason,
        granted_by=granted_by,
        denied_by=denied_by,
        pending=pending,
        near_misses=() if reason == "granted" else near_misses(catalogue, name),
        revision=catalogue.revision,
    )


def _capability_rules(
    catalogue: Catalogue, profile: str, layer: Layer, event: str
) -> tuple[Rule, ...]:
    active = hold(catalogue, profile, layer).active
    paths = _paths(catalogue, chosen(catalogue, layer), set(active))
    rules = []
    for name in active:
        if name in catalogue.made:
            continue  # what it gives depends on its author, and not on a profile
        for pattern, place in _covering(catalogue, catalogue.capabilities[name], event):
            rules.append(Rule(pattern, place, name, paths[name]))
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
    catalogue: Catalogue, roots: Iterable[str], active: set[str]
) -> dict[str, tuple[str, ...]]:
    """The shortest chain of requires from a chosen capability to each active one."""
    paths: dict[str, tuple[str, ...]] = {root: (root,) for root in roots if root in active}
    frontier = list(paths)
    for name in frontier:  # grows while it is walked: breadth first
        for ref in catalogue.capabilities[name].requires:
            required = catalogue.names[ref.name]
            if required in active and required not in paths:
                paths[required] = (*paths[name], required)
                frontier.append(required)
    return paths


def _added_rules(catalogue: Catalogue, layer: Layer, event: str) -> tuple[Rule, ...]:
    spec = catalogue.universe.specs[event]
    rules = []
    for entry in layer.allowed:
        pattern = entry.pattern
        if pattern is None:
            continue
        named = pattern.exact and catalogue.universe.canonical(pattern.prefix) == event
        if named or (not pattern.exact and spec.wildcard and pattern.covers(event)):
            rules.append(Rule(entry.text, entry.place))
    return tuple(rules)


def _deny_rules(catalogue: Catalogue, layer: Layer, event: str) -> tuple[Rule, ...]:
    spec = catalogue.universe.specs.get(event)
    names = (event, *(spec.aliases if spec else ()))
    return tuple(
        Rule(entry.text, entry.place)
        for entry in layer.disallowed
        if entry.pattern and any(entry.pattern.covers(name) for name in names)
    )


def _is_gated(catalogue: Catalogue, profile: str, event: str) -> bool:
    """Tell whether an unapproved capability holds this event."""
    return event in catalogue.universe.index and any(
        any(_covering(catalogue, catalogue.capabilities[name], event))
        for name in gated_capabilities(catalogue, profile)
    )


def _pending(catalogue: Catalogue, profile: str, layer: Layer, event: str) -> tuple[str, ...]:
    """The reviews that the event waits for: of what the profile holds, or names in a list.

    By patterns alone, as in `decide.refusal`: the answer must not tell which events exist.
    """
    waiting = set(hold(catalogue, profile, layer).pending)
    listed = (catalogue.universe.present(entry.pattern) for entry in layer.allowed if entry.pattern)
    if any(pattern.covers(event) for pattern in listed):
        waiting.update(gated_capabilities(catalogue, profile))
    return tuple(name for name in sorted(waiting) if _speaks_of(catalogue, name, event))


def _speaks_of(catalogue: Catalogue, name: str, event: str) -> bool:
    definition = catalogue.capabilities[name]
    if definition.event_patterns is None:
        return event in catalogue.universe.names_in(catalogue.own_events[name])
    patterns = (catalogue.universe.present(placed.pattern) for placed in definition.event_patterns)
    return any(pattern.covers(event) for pattern in patterns)


def near_misses(catalogue: Catalogue, event: str) -> tuple[NearMiss, ...]:
    """Events of a similar name that exist, and capabilities that would give this one."""
    givers = [NearMiss(event, name) for name in givers_of(catalogue, event)]
    alike = [
        NearMiss(other, next(iter(givers_of(catalogue, other)), None))
        for other in nearest(event, catalogue.universe.names, count=_NEAR)
        if other != event
    ]
    return tuple([*givers, *alike][:_NEAR])


def givers_of(catalogue: Catalogue, event: str) -> list[str]:
    """All capabilities that hold an event by themselves, sorted."""
    bit = catalogue.universe.bits_of([catalogue.universe.canonical(event)])
    return sorted(name for name, own in catalogue.own_events.items() if own & bit)
