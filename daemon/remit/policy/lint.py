"""What has drifted apart: events, capabilities, profiles and tool names."""

from collections.abc import Iterable
from typing import Any

from remit.errors import Place, Problem, by_place
from remit.model.event import Universe
from remit.policy.catalogue import Catalogue
from remit.policy.tool_names import conflicts, tool_names

Finding = dict[str, Any]


def lint(
    catalogue: Catalogue, launchers: Iterable[Problem] = (), handlers: Iterable[Problem] = ()
) -> dict[str, list[Finding]]:
    """Every kind of drift, each a sorted list of findings.

    Args:
        catalogue: what is looked at.
        launchers: those that cannot start as they are.
        handlers: those that were not loaded.
    """
    return {
        "dead_patterns": _of_code(catalogue, "dead_pattern"),
        "unmapped_events": _unmapped(catalogue),
        "unused_capabilities": _unused(catalogue),
        "undefined_capabilities": _undefined(catalogue),
        "other_capability": _other_capability(catalogue),
        "handler_mistakes": _told(sorted(handlers, key=by_place)),
        "deprecated_in_use": _of_code(catalogue, "deprecated", "old_name", "retired"),
        "broken_requirements": _of_code(catalogue, "broken_requirement"),
        "tool_name_conflicts": _shared_names(catalogue.universe),
        "exposure_mistakes": _of_code(catalogue, "dead_pin", "nothing_to_find"),
        "commands_not_allowed": _told(launchers),
    }


def _finding(name: str, place: Place | None, **more: Any) -> Finding:
    where = {"file": place.file, "line": place.line, "column": place.column} if place else {}
    return {"name": name, **where, **more}


def _of_code(catalogue: Catalogue, *codes: str) -> list[Finding]:
    return _told(problem for problem in catalogue.warnings if problem.code in codes)


def _told(problems: Iterable[Problem]) -> list[Finding]:
    return [_finding(_quoted(p), p.place, message=p.message, hint=p.hint) for p in problems]


def _quoted(problem: Problem) -> str:
    """What a warning is about: the first thing it quotes, else its first word."""
    parts = problem.message.split("'")
    quoted = 2
    return parts[1] if len(parts) > quoted else problem.message.split()[0]


def _shared_names(universe: Universe) -> list[Finding]:
    """Tool names that several events could have, with the one that each of them got."""
    names = tool_names(universe)
    return [
        {"name": name, "events": events, "names": {event: names[event] for event in events}}
        for name, events in conflicts(universe)
    ]


def _unmapped(catalogue: Catalogue) -> list[Finding]:
    """Events that no capability holds: nobody gets them but by name."""
    mapped = 0
    for bits in catalogue.own_events.values():
        mapped |= bits
    names = catalogue.universe.names_in(catalogue.universe.everything & ~mapped)
    specs = catalogue.universe.specs
    return [_finding(n, specs[n].place, capability=specs[n].capability) for n in names]


def _unused(catalogue: Catalogue) -> list[Finding]:
    """Capabilities that no profile holds, asks for, or reaches through requires."""
    used = set(catalogue.base)
    for grant in catalogue.grants.values():
        used.update(grant.capabilities, grant.pending_review)
    names = sorted(set(catalogue.capabilities) - _with_requires(catalogue, used))
    return [
        _finding(name, catalogue.capabilities[name].place)
        for name in names
        if catalogue.capabilities[name].is_grantable
    ]


def _with_requires(catalogue: Catalogue, names: Iterable[str]) -> set[str]:
    return set().union(*({name, *catalogue.closures[name]} for name in names))


def _other_capability(catalogue: Catalogue) -> list[Finding]:
    """Events whose handler names one capability, and the files give them by another, or by none."""
    found = []
    for event, spec in sorted(catalogue.universe.specs.items()):
        named = catalogue.names.get(spec.capability or "")
        if named is None:
            continue
        others = sorted(_naming(catalogue, event) - {named})
        if catalogue.capabilities[named].event_patterns is None:
            if not others:
                continue
            message = f"its handler names {named!r}, and the files also {_and(others)}"
            hint = f"name {others[0]!r} in its decorator, or take it out of {_and(others)}"
        elif not catalogue.own_events[named] & catalogue.universe.bits_of([event]):
            gives = f"give it by {_and(others)}" if others else "give it by none"
            message = f"its handler names {named!r}, whose patterns omit it; the files {gives}"
            hint = f"add it to the event_patterns of {named!r}, or name another in its decorator"
        else:
            continue
        found.append(_finding(event, spec.place, message=message, hint=hint))
    return found


def _naming(catalogue: Catalogue, event: str) -> set[str]:
    """The capabilities of the files whose patterns name an event exactly."""
    return {
        name
        for name, definition in catalogue.capabilities.items()
        for placed in definition.event_patterns or ()
        if placed.pattern.exact and catalogue.universe.canonical(placed.pattern.prefix) == event
    } - catalogue.runtime_capabilities.keys()


def _and(names: Iterable[str]) -> str:
    return " and ".join(map(repr, names))


def _undefined(catalogue: Catalogue) -> list[Finding]:
    """Capabilities that handlers name and no file defines."""
    missing: dict[str, list[str]] = {}
    for event, spec in catalogue.universe.specs.items():
        if spec.capability and spec.capability not in catalogue.names:
            missing.setdefault(spec.capability, []).append(event)
    specs = catalogue.universe.specs
    return [
        _finding(name, specs[min(events)].place, events=sorted(events))
        for name, events in sorted(missing.items())
    ]
