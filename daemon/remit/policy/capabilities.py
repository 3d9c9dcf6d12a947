"""Capabilities compiled to bits over the events: those of the files, and those made at run time.

What is made at run time gives nothing by the catalogue (`own_events` and `closures` are empty of
it): a share beside the grant says what it could give, and `delegate.with_shares` what it does.
"""

from collections.abc import Iterable, Mapping

import msgspec

from remit.errors import Place, Problem
from remit.model.capability import Capability, RuntimeCapability
from remit.model.event import Universe
from remit.model.names import KNOWN_MODEL_TOOLS, Ref, did_you_mean
from remit.model.paths import parents
from remit.policy.catalogue import (
    Catalogue,
    CompiledRuntimeCapability,
    dead_pattern,
    find_scopes,
)


def compile_capabilities(
    definitions: Iterable[Capability], universe: Universe, problems: list[Problem]
) -> Catalogue:
    """Compile the capabilities; errors and warnings are added to `problems`."""
    capabilities = {definition.id: definition for definition in definitions}
    names = _names(capabilities, problems)
    _check_requires(capabilities, names, problems)
    graph = {
        name: [names[ref.name] for ref in definition.requires if ref.name in names]
        for name, definition in capabilities.items()
    }
    order, circles = dependencies_first(graph)
    problems.extend(
        circle_problem(circle, capabilities[circle[0]].place, "requires") for circle in circles
    )
    _check_patterns(capabilities, universe, problems)
    _check_handlers(capabilities, names, universe, problems)
    problems.extend(mount_conflicts(capabilities.values()))
    own_events = _own_events(capabilities, names, universe)
    closures = _closures(order, graph, capabilities)
    return Catalogue(
        revision=0,
        universe=universe,
        capabilities=capabilities,
        names=names,
        own_events=own_events,
        closures=closures,
        base=tuple(sorted(c.id for c in capabilities.values() if c.always_included)),
        scopes=find_scopes(capabilities, closures, own_events, universe),
    )


def _names(capabilities: Mapping[str, Capability], problems: list[Problem]) -> dict[str, str]:
    """Canonical ids by every name; a defined name is never taken over by an old one."""
    names = {name: name for name in capabilities}
    for definition in sorted(capabilities.values(), key=lambda c: c.id):
        for ref in (*definition.aliases, *definition.replaces):
            is_alias = ref in definition.aliases
            if ref.name in capabilities and not is_alias:
                continue  # `replaces` may name a capability that is still defined
            if names.get(ref.name, definition.id) != definition.id:
                message = f"{ref.name!r} already names the capability {names[ref.name]!r}"
                problems.append(Problem(ref.place, "name_conflict", message, "choose another"))
            else:
                names[ref.name] = definition.id
    return names


def _check_requires(
    capabilities: Mapping[str, Capability], names: Mapping[str, str], problems: list[Problem]
) -> None:
    for definition in capabilities.values():
        for ref in definition.requires:
            problems.extend(check_capability_ref(ref, capabilities, names))


def check_capability_ref(
    ref: Ref, capabilities: Mapping[str, Capability], names: Mapping[str, str]
) -> list[Problem]:
    """An unknown name is an error, an old one a warning."""
    if ref.name not in names:
        message = f"there is no capability {ref.name!r}"
        hint = did_you_mean(ref.name, capabilities)
        return [Problem(ref.place, "unknown_capability", message, hint)]
    if ref.name not in capabilities:
        message = f"{ref.name!r} is an old name of {names[ref.name]!r}"
        hint = f"write {names[ref.name]!r}"
        return [Problem(ref.place, "old_name", message, hint, severity="warning")]
    return []


def _check_patterns(
    capabilities: Mapping[str, Capability], universe: Universe, problems: list[Problem]
) -> None:
    for definition in capabilities.values():
        problems.extend(
            dead_pattern(str(placed.pattern), placed.place, universe)
            for placed in definition.event_patterns or ()
            if not universe.granted_by(placed.pattern)
        )
        for ref in definition.claude_tools:
            if ref.name not in KNOWN_MODEL_TOOLS:
                problems.extend(_doubtful_tool(ref))


def _check_handlers(
    capabilities: Mapping[str, Capability],
    names: Mapping[str, str],
    universe: Universe,
    problems: list[Problem],
) -> None:
    """Events whose handlers name a capability that lists its events, and not these."""
    left_out: dict[str, list[str]] = {}
    for event, spec in universe.specs.items():
        definition = capabilities.get(names.get(spec.capability or "", ""))
        patterns = definition.event_patterns if definition else None
        if definition is None or patterns is None:
            continue
        bit = universe.bits_of([event])
        if not any(universe.granted_by(placed.pattern) & bit for placed in patterns):
            left_out.setdefault(definition.id, []).append(event)
    for name, events in left_out.items():
        definition = capabilities[name]
        patterns = definition.event_patterns
        place = patterns[0].place if patterns else definition.place
        listed = ", ".join(map(repr, sorted(events)))
        message = f"the event_patterns of {name!r} leave out {listed}, whose handlers name it"
        hint = "add them, or remove event_patterns: then the handlers decide"
        problems.append(Problem(place, "left_out_event", message, hint, severity="warning"))


def _doubtful_tool(ref: Ref) -> list[Problem]:
    hint = did_you_mean(ref.name, KNOWN_MODEL_TOOLS)
    if not hint:
        return []
    message = f"{ref.name!r} is no model tool that we know"
    return [Problem(ref.place, "unknown_model_tool", message, hint, severity="warning")]


def _own_events(
    capabilities: Mapping[str, Capability], names: Mapping[str, str], universe: Universe
) -> dict[str, int]:
    own = dict.fromkeys(capabilities, 0)
    for definition in capabilities.values():
        for placed in definition.event_patterns or ():
            own[definition.id] |= universe.granted_by(placed.pattern)
    for name, spec in universe.specs.items():
        holder = capabilities.get(names.get(spec.capability or "", ""))
        if holder is not None and holder.event_patterns is None:
            own[holder.id] |= 1 << universe.index[name]
    return own


def _closures(
    order: list[str], graph: Mapping[str, list[str]], capabilities: Mapping[str, Capability]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, frozenset[str]] = {}
    for name in order:
        if not capabilities[name].is_grantable:
            found[name] = frozenset()
            continue
        below = (found.get(required, frozenset()) for required in graph[name])
        found[name] = frozenset((name,)).union(*below)
    return {name: tuple(sorted(closure)) for name, closure in found.items()}


def dependencies_first(
    graph: Mapping[str, Iterable[str]],
) -> tuple[list[str], list[list[str]]]:
    """Sort names so that each comes after what it refers to.

    References to names outside the graph are passed over. Without recursion, so that a long chain
    is no different from a short one.

    Returns:
        The order, and every circle that was met, each as a chain whose ends are the same name.
    """
    order: list[str] = []
    circles: list[list[str]] = []
    done: set[str] = set()
    for start in sorted(graph):
        if start not in done:
            _walk(start, graph, done, order, circles)
    return order, circles


def _walk(
    start: str,
    graph: Mapping[str, Iterable[str]],
    done: set[str],
    order: list[str],
    circles: list[list[str]],
) -> None:
    path = [start]
    on_path = {start}
    pending = [iter(sorted(graph[start]))]
    while path:
        following = next(pending[-1], None)
        if following is None:
            pending.pop()
            name = path.pop()
            on_path.discard(name)
            done.add(name)
            order.append(name)
        elif following in on_path:
            circles.append([*path[path.index(following) :], following])
        elif following in graph and following not in done:
            path.append(following)
            on_path.add(following)
            pending.append(iter(sorted(graph[following])))


def circle_problem(circle: list[str], place: Place, word: str) -> Problem:
    """The error that prints a circle as a chain."""
    chain = " → ".join(circle)
    return Problem(place, "cycle", f"{word} goes in a circle: {chain}", "cut one of these links")


def mount_conflicts(definitions: Iterable[Capability]) -> list[Problem]:
    """Mounts that nobody could hold together: of one path, or one below the other."""
    ordered = sorted(definitions, key=lambda one: one.id)
    first: dict[str, str] = {}
    for definition in reversed(ordered):
        first.update((mount.path, definition.id) for mount in definition.mounts)
    problems = []
    seen: set[str] = set()
    for definition in ordered:
        for mount in definition.mounts:
            above = [path for path in parents(mount.path) if path in first]
            if mount.path in seen:
                above.append(mount.path)
            seen.add(mount.path)
            problems += [
                Problem(
                    definition.place,
                    "mount_conflict",
                    f"{mount.path!r} cannot be mounted: {first[path]!r} mounts {path!r}",
                    "choose another path",
                )
                for path in above
            ]
    return problems


def add_runtime_capabilities(
    catalogue: Catalogue, made: Iterable[RuntimeCapability], problems: list[Problem]
) -> Catalogue:
    """The catalogue with what was made at run time; the files come first, whatever they say.

    Nothing here is an error: an edit of the files must not fail because of what somebody made.
    """
    found: dict[str, CompiledRuntimeCapability] = {}
    for one in sorted(made, key=lambda one: one.id):
        if one.id in catalogue.names:
            message = f"{one.id!r}, made by {one.author}, is hidden by a definition in the files"
            hint = "give one of them another name"
            problems.append(Problem(one.place, "name_conflict", message, hint, severity="warning"))
            continue
        found[one.id] = _compiled(catalogue, one)
        if found[one.id].inert:
            message = f"{one.id!r}, made by {one.author}, gives nothing: {found[one.id].inert}"
            problems.append(Problem(one.place, "inert_capability", message, severity="warning"))
    if not found:
        return catalogue
    capabilities = {name: one.capability for name, one in found.items()}
    return msgspec.structs.replace(
        catalogue,
        capabilities={**catalogue.capabilities, **capabilities},
        names={**catalogue.names, **{name: name for name in found}},
        own_events={**catalogue.own_events, **dict.fromkeys(found, 0)},
        closures={
            **catalogue.closures,
            **{name: (name,) if c.is_grantable else () for name, c in capabilities.items()},
        },
        runtime_capabilities=found,
    )


def _compiled(catalogue: Catalogue, one: RuntimeCapability) -> CompiledRuntimeCapability:
    said = one.capability
    known = tuple(ref for ref in said.requires if ref.name in catalogue.names)
    # Everybody who follows requirements finds what they name, also when this one is inert.
    definition = msgspec.structs.replace(said, requires=known)
    made = CompiledRuntimeCapability(
        definition, one.author, one.author_key, limits=definition.resource_limits
    )
    missing = [ref.name for ref in said.requires if ref not in known]
    if missing:
        return msgspec.structs.replace(made, inert=f"the files define no {missing[0]!r}")
    if mount_conflicts([*_mounting(catalogue), definition]):
        return msgspec.structs.replace(made, inert="the files mount something in its folder")
    own = 0
    for placed in definition.event_patterns or ():
        own |= catalogue.universe.granted_by(placed.pattern)
    bits, exposed = own, own if definition.mcp_tools else 0
    tools = {ref.name for ref in definition.claude_tools}
    limits = definition.resource_limits
    members = required_by(catalogue, definition)
    for name in members:
        required = catalogue.capabilities[name]
        bits |= catalogue.own_events[name]
        exposed |= catalogue.own_events[name] if required.mcp_tools else 0
        tools.update(ref.name for ref in required.claude_tools)
        limits = limits.smallest(required.resource_limits)
    return msgspec.structs.replace(
        made,
        own=own,
        bits=bits,
        exposed=exposed & ~catalogue.universe.pushed,
        claude_tools=frozenset(tools),
        limits=limits,
        members=members,
    )


def _mounting(catalogue: Catalogue) -> list[Capability]:
    return [one for one in catalogue.capabilities.values() if one.mounts]


def required_by(catalogue: Catalogue, definition: Capability) -> tuple[str, ...]:
    """All that a runtime capability requires, directly or not, where it is grantable; sorted."""
    names = (
        catalogue.names[ref.name] for ref in definition.requires if ref.name in catalogue.names
    )
    closures = (
        catalogue.closures[name] for name in names if name not in catalogue.runtime_capabilities
    )
    return tuple(sorted(frozenset().union(*closures)))
