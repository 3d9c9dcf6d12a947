"""From a profile to a grant.

The order is fixed: base, extends, mixins, flags, requires, additional tools, disallowed tools,
`max_effect`, review gate, parent ceiling. Denials come after everything that adds, so nothing
re-adds what they took.

`max_effect` takes away last, like a denial: whoever gives an event, one that does more is not left,
and what an agent is given beside its profile lies under the same ceiling. Nobody states the effect
of a model tool, or of an event without a handler, and what is not stated never qualifies.
"""

from collections.abc import Iterable, Mapping, Set

import msgspec

from remit.model.composition import Composition, Scalar
from remit.model.event import Reason, Universe
from remit.model.grant import Grant, Share
from remit.model.limits import NO_LIMITS, Limits, PlacedEffect
from remit.model.names import EventName, EventPattern, ToolEntry
from remit.policy.catalogue import Catalogue, CompiledRuntimeCapability
from remit.policy.layers import Layer


class Holding(msgspec.Struct, frozen=True):
    """Which capabilities a profile holds, and which of them wait for a review."""

    active: tuple[str, ...]
    pending: tuple[str, ...]


class RefusalPatterns(msgspec.Struct, frozen=True):
    """The patterns by which a refused name is answered, whether or not there is such an event."""

    waiting: tuple[EventPattern, ...]
    """Reviews that would bring something."""
    capped: tuple[EventPattern, ...] = ()
    """What gives something of which the ceiling takes a part."""

    def reason(self, event: EventName) -> Reason:
        """Why a name is refused that nothing denies; as in `decide.refusal`."""
        if any(pattern.covers(event) for pattern in self.waiting):
            return "review_pending"
        return "explicit_deny" if any(p.covers(event) for p in self.capped) else "no_grant"


def hold(
    catalogue: Catalogue, profile: str, layer: Layer, reviewed: frozenset[str] = frozenset()
) -> Holding:
    """Follow flags and requires; a capability that waits for review brings nothing with it.

    `reviewed` were approved for the agent whose layer this is, beside what its profile has.
    """
    roots = catalogue.roots(layer.flags)
    wanted = frozenset().union(*(catalogue.closures[root] for root in roots))
    waiting = wanted.intersection(gated_capabilities(catalogue, profile, reviewed))
    if not waiting:
        return Holding(tuple(sorted(wanted)), ())
    active: set[str] = set()
    pending: set[str] = set()
    frontier = list(roots)
    while frontier:
        name = frontier.pop()
        if name in waiting:
            pending.add(name)
        elif name not in active and catalogue.capabilities[name].is_grantable:
            active.add(name)
            if name in catalogue.runtime_capabilities:
                continue  # what it requires it gives by itself, and only as far as its author may
            frontier += (catalogue.names[r.name] for r in catalogue.capabilities[name].requires)
    return Holding(tuple(sorted(active)), tuple(sorted(pending)))


def make_grant(
    catalogue: Catalogue,
    composition: Composition,
    layer: Layer,
    environment: Mapping[str, Scalar],
    reviewed: frozenset[str] = frozenset(),
) -> Grant:
    """Compile a flattened profile into a grant, without its warnings."""
    universe = catalogue.universe
    holding = hold(catalogue, composition.name, layer, reviewed)
    gated = gated_capabilities(catalogue, composition.name, reviewed)
    held = _gain(catalogue, holding, layer.limits)
    listed = _listed(catalogue, layer, held, gated)
    denied = covered_bits(catalogue, layer.disallowed)
    cut = listed.bits & universe.above(layer.max_effect)
    bits = listed.bits & ~(denied | cut)
    exposed = listed.exposed & bits & ~universe.pushed
    events = frozenset(universe.names_in(bits))
    tools = listed.tools - _denied_tools(layer.disallowed, listed.tools)
    cut_tools = tools if layer.max_effect else frozenset()
    stopped = _stopped_by_review(catalogue, gated, layer.allowed, held)
    refused = refusals(catalogue, layer, holding, gated)
    return Grant(
        profile=composition.name,
        revision=catalogue.revision,
        bits=bits,
        events=events,
        denied=_denials(universe, layer.disallowed),
        capped=refused.capped,
        max_effect=layer.max_effect.effect if layer.max_effect else None,
        denied_events=tuple(universe.names_in(denied | cut)),
        approval_required=_waiting_events(catalogue, layer, bits),
        exposed=events if exposed == bits else frozenset(universe.names_in(exposed)),
        exposure=layer.exposure.mode if layer.exposure else "all",
        pinned=_covered(catalogue, layer.pinned, exposed),
        trusted=composition.trust,
        claude_tools=tools - cut_tools,
        denied_tools=cut_tools.union(e.model_tool for e in layer.disallowed if e.model_tool),
        limits=held.limits,
        capabilities=holding.active,
        pending_review=tuple(sorted({*holding.pending, *stopped})),
        pending_patterns=refused.waiting,
        prompt=layer.prompt,
        launcher=layer.launcher,
        config={n: f.config for n, f in layer.flags.items() if f.on and f.config is not None},
        variables=dict(environment),
        shares=_shares(catalogue, layer, holding, held, gated),
    )


class _Gain(msgspec.Struct, frozen=True):
    """What is given so far: by capabilities, then by the allow lists as well."""

    bits: int
    exposed: int
    tools: frozenset[str]
    limits: Limits


def _gain(catalogue: Catalogue, holding: Holding, limits: Limits) -> _Gain:
    exposed = unexposed = 0
    tools: set[str] = set()
    for name in holding.active:
        definition = catalogue.capabilities[name]
        if definition.mcp_tools:
            exposed |= catalogue.own_events[name]
        else:
            unexposed |= catalogue.own_events[name]
        if definition.claude_tools:
            tools.update(ref.name for ref in definition.claude_tools)
        if definition.resource_limits is not NO_LIMITS:
            limits = limits.smallest(definition.resource_limits)
        if name in catalogue.runtime_capabilities:
            limits = limits.smallest(catalogue.runtime_capabilities[name].limits)
    return _Gain(exposed | unexposed, exposed, frozenset(tools), limits)


def _listed(catalogue: Catalogue, layer: Layer, held: _Gain, gated: Iterable[str]) -> _Gain:
    """The same with what the allow lists add, but for what waits for a review."""
    bits, exposed, tools = held.bits, held.exposed, set(held.tools)
    for entry in layer.allowed:
        added = catalogue.universe.granted_by(entry.pattern) if entry.pattern else 0
        bits |= added
        exposed |= added
        tools.update([entry.model_tool] if entry.model_tool else [])
    for name in gated:
        own_bits, own_tools = _beside(catalogue, name, held)
        bits &= ~own_bits
        tools -= own_tools
    return _Gain(bits, exposed, frozenset(tools), held.limits)


def _beside(catalogue: Catalogue, name: str, held: _Gain) -> tuple[int, set[str]]:
    """What a capability gives by itself that those which are held do not."""
    tools = {ref.name for ref in catalogue.capabilities[name].claude_tools}
    return catalogue.own_events[name] & ~held.bits, tools - held.tools


def _shares(
    catalogue: Catalogue, layer: Layer, holding: Holding, held: _Gain, gated: Iterable[str]
) -> tuple[Share, ...]:
    """What runtime capabilities could add, under the same denials and reviews as a tool list."""
    known = catalogue.runtime_capabilities
    offers = {name: known[name] for name in holding.active if name in known}
    if not offers:
        return ()
    shut = covered_bits(catalogue, layer.disallowed) | catalogue.universe.above(layer.max_effect)
    tools: set[str] = set()
    for name in gated:
        own_bits, own_tools = _beside(catalogue, name, held)
        shut |= own_bits
        tools |= own_tools
    offered = {tool for offer in offers.values() for tool in offer.claude_tools}
    tools |= offered if layer.max_effect else _denied_tools(layer.disallowed, offered)
    waiting = catalogue.universe.approved_only | covered_bits(catalogue, layer.approval)
    pinned = covered_bits(catalogue, layer.pinned)
    return tuple(
        _share(name, offer, shut=shut, shut_tools=frozenset(tools), waiting=waiting, pinned=pinned)
        for name, offer in offers.items()
    )


def _share(
    name: str,
    offer: CompiledRuntimeCapability,
    *,
    shut: int,
    shut_tools: frozenset[str],
    waiting: int,
    pinned: int,
) -> Share:
    bits = offer.bits & ~shut
    exposed = offer.exposed & bits
    return Share(
        capability=name,
        author=offer.author,
        author_key=offer.author_key,
        bits=bits,
        exposed=exposed,
        waiting=waiting & bits,
        claude_tools=offer.claude_tools - shut_tools,
        pinned=exposed & pinned,
    )


def _covered(catalogue: Catalogue, entries: Iterable[ToolEntry], bits: int) -> frozenset[str]:
    return frozenset(catalogue.universe.names_in(bits & covered_bits(catalogue, entries)))


def _waiting_events(catalogue: Catalogue, layer: Layer, bits: int) -> frozenset[str]:
    """Which of some events need an approval at each call; patterns reach as far as a denial's."""
    waiting = catalogue.universe.approved_only | covered_bits(catalogue, layer.approval)
    return frozenset(catalogue.universe.names_in(bits & waiting))


def _denials(universe: Universe, entries: Iterable[ToolEntry]) -> tuple[EventPattern, ...]:
    patterns = (entry.pattern for entry in entries if entry.pattern)
    return tuple(denial for pattern in patterns for denial in universe.denials(pattern))


def covered_bits(catalogue: Catalogue, entries: Iterable[ToolEntry]) -> int:
    """Every event that the entries of a list cover, by whatever name."""
    bits = 0
    for entry in entries:
        if entry.pattern:
            bits |= catalogue.universe.denied_by(entry.pattern)
    return bits


def _denied_tools(entries: Iterable[ToolEntry], tools: Set[str]) -> Set[str]:
    named = {entry.model_tool for entry in entries if entry.model_tool}
    everything = any(entry.pattern and entry.pattern.is_everything for entry in entries)
    return tools if everything else tools & named


def gated_capabilities(
    catalogue: Catalogue, profile: str, reviewed: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Capabilities whose events wait for a review in this profile, held or not.

    Naming such an event in `additional_tools` must not be a way around the review.
    """
    return tuple(
        name
        for name in catalogue.scopes
        if name not in reviewed and catalogue.needs_review(profile, name)
    )


def _stopped_by_review(
    catalogue: Catalogue,
    gated: Iterable[str],
    allowed: Iterable[ToolEntry],
    held: _Gain,
) -> set[str]:
    """The gated capabilities that take something away which the allow lists name."""
    added_bits = 0
    added_tools = set()
    for entry in allowed:
        added_bits |= catalogue.universe.granted_by(entry.pattern) if entry.pattern else 0
        added_tools.add(entry.model_tool)
    stopped = set()
    for name in gated:
        own_bits, own_tools = _beside(catalogue, name, held)
        if own_bits & added_bits or own_tools & added_tools:
            stopped.add(name)
    return stopped


def refusals(
    catalogue: Catalogue, layer: Layer, holding: Holding, gated: Iterable[str]
) -> RefusalPatterns:
    """The patterns by which names are refused that nothing denies outright."""
    waiting = _pending_patterns(catalogue, holding.pending, gated, layer.allowed)
    if layer.max_effect is None:
        return RefusalPatterns(waiting)
    listed = (catalogue.universe.present(e.pattern) for e in layer.allowed if e.pattern)
    giving = (*_patterns_of(catalogue, holding.active), *listed)
    return refusal_patterns(catalogue, layer.max_effect, giving=giving, waiting=waiting)


def _pending_patterns(
    catalogue: Catalogue, held: Iterable[str], gated: Iterable[str], allowed: Iterable[ToolEntry]
) -> tuple[EventPattern, ...]:
    """What approvals would allow: all of a held capability, of others what allow lists name.

    All of one is what it requires as well: that is shown to whoever approves it.
    """
    listed = [catalogue.universe.present(entry.pattern) for entry in allowed if entry.pattern]
    shared = (one.overlap(other) for other in _patterns_of(catalogue, gated) for one in listed)
    brought = {part for name in held for part in catalogue.closures[name]}
    return (*_patterns_of(catalogue, brought), *(pattern for pattern in shared if pattern))


def _patterns_of(catalogue: Catalogue, names: Iterable[str]) -> tuple[EventPattern, ...]:
    patterns = []
    for name in sorted(names):
        listed = catalogue.capabilities[name].event_patterns
        if listed is None:
            own = catalogue.universe.names_in(catalogue.own_events[name])
            patterns += [EventPattern(event, exact=True) for event in own]
        else:
            patterns += [catalogue.universe.present(placed.pattern) for placed in listed]
    return tuple(patterns)


def refusal_patterns(
    catalogue: Catalogue,
    ceiling: PlacedEffect | None,
    *,
    giving: Iterable[EventPattern],
    waiting: tuple[EventPattern, ...],
) -> RefusalPatterns:
    """Sort the patterns of a profile by how a name under them is refused.

    A review that brings nothing under the ceiling is none to wait for. A wildcard stands for names
    that exist and names that do not; so a refusal tells neither apart.
    """
    if ceiling is None:
        return RefusalPatterns(waiting)
    universe, kept = catalogue.universe, catalogue.universe.at_most[ceiling.effect]
    hopeless = [p for p in waiting if (bits := universe.granted_by(p)) and not bits & kept]
    cut = (p for p in giving if not (p.exact and universe.granted_by(p) & kept))
    return RefusalPatterns(
        tuple(pattern for pattern in waiting if pattern not in hopeless),
        tuple(dict.fromkeys((*cut, *hopeless))),
    )


def grant_everything(catalogue: Catalogue) -> Grant:
    """The operator's grant: every event of the revision, without limits or gates."""
    universe = catalogue.universe
    return Grant(
        profile="",
        revision=catalogue.revision,
        bits=universe.everything,
        events=frozenset(universe.names),
        exposed=frozenset(universe.names_in(universe.everything & ~universe.pushed)),
        capabilities=tuple(sorted(catalogue.capabilities)),
    )
