"""A world as Cedar policies: the same rules for an engine that we did not write.

Nothing here uses the resolver. Cedar itself follows `requires` and the lines of descent, because
both are parents of its entities, and it matches patterns with its own `like`. Only the ranks of
flags, which Cedar does not know, are worked out here, by plain recursion.
"""

import json
from collections.abc import Iterable, Mapping

import cedarpy
from tests.policy.catalogues import EVENTS, NAMED_ONLY, OLD_NAMES, TOOLS, Role, Unit, World

Decisions = dict[str, set[str]]
"""For each profile the events and model tools that are allowed."""


def ask(
    policies: Iterable[str], entities: list[dict[str, object]], profiles: list[str]
) -> Decisions:
    """Ask Cedar about every profile and every event and model tool."""
    things = [("Event", name) for name in EVENTS] + [("Tool", name) for name in TOOLS]
    asked = [(profile, kind, name) for profile in profiles for kind, name in things]
    requests = [
        {
            "principal": _uid("Profile", profile),
            "action": _uid("Action", "call"),
            "resource": _uid(kind, name),
            "context": {},
        }
        for profile, kind, name in asked
    ]
    answers = cedarpy.is_authorized_batch(requests, "\n".join(policies), json.dumps(entities))
    allowed: Decisions = {profile: set() for profile in profiles}
    for (profile, _, name), answer in zip(asked, answers, strict=True):
        assert not answer.diagnostics.errors
        if answer.decision == cedarpy.Decision.Allow:
            allowed[profile].add(name)
    return allowed


def _uid(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "id": name}


def entity(
    kind: str, name: str, parents: Iterable[tuple[str, str]] = (), /, **attributes: object
) -> dict[str, object]:
    """An entity in Cedar's JSON form."""
    return {
        "uid": _uid(kind, name),
        "attrs": attributes,
        "parents": [_uid(*parent) for parent in parents],
    }


def things(world: World) -> list[dict[str, object]]:
    """Events and model tools, with what patterns look at."""
    old_names = {new: old for old, new in OLD_NAMES.items()}
    events = [
        entity(
            "Event",
            name,
            name=name,
            old=old_names.get(name, ""),
            wildcard=name not in NAMED_ONLY,
            holder=holder or "",
        )
        for name, holder in zip(EVENTS, world.holders, strict=True)
    ]
    return [*events, *(entity("Tool", name) for name in TOOLS)]


def unresolved(world: World, approved: set[str]) -> tuple[list[str], list[dict[str, object]]]:
    """Policies and entities made from the raw definitions."""
    live = {u.name for u in world.units if _is_live(u, approved)}
    gates = [u for u in world.units if u.reviewed and u.name not in approved]
    policies = [_holding(unit) for unit in world.units if unit.name in live]
    for role in world.roles:
        policies += [_allowing(role.name, entry, gates) for entry in role.allowed]
        policies += [_forbidding(role.name, entry) for entry in role.denied]
    roles = {role.name: role for role in world.roles}
    entities = things(world)
    for unit in world.units:
        required = unit.requires if unit.name in live else ()
        entities.append(entity("Capability", unit.name, (("Capability", r) for r in required)))
    for role in world.roles:
        roots = {u.name for u in world.units if u.always}
        roots |= {name for name, on in ranked_flags(role, roles).items() if on}
        parents = [("Line", role.name), *(("Capability", name) for name in sorted(roots))]
        entities.append(entity("Profile", role.name, parents))
        built_on = {*role.extends, *role.mixins}
        entities.append(entity("Line", role.name, (("Line", name) for name in sorted(built_on))))
    return policies, entities


def _is_live(unit: Unit, approved: set[str]) -> bool:
    waits = unit.reviewed and unit.name not in approved
    return unit.status in {"available", "deprecated"} and not waits


def _holding(unit: Unit) -> str:
    who = f'principal in Capability::"{unit.name}"'
    return (
        f"permit({who}, action, resource is Event) when {{ {_holds(unit)} }};"
        f"permit({who}, action, resource is Tool) when {{ {_has_tool(unit)} }};"
    )


def _holds(unit: Unit) -> str:
    if unit.patterns is None:
        return f'resource.holder == "{unit.name}"'
    return " || ".join(["false", *(_grants(pattern) for pattern in unit.patterns)])


def _has_tool(unit: Unit) -> str:
    return " || ".join(["false", *(f'resource == Tool::"{tool}"' for tool in unit.tools)])


def _grants(pattern: str) -> str:
    if pattern.endswith("*"):
        return f'(resource.wildcard && resource.name like "{pattern}")'
    return f'(resource.name == "{pattern}" || resource.old == "{pattern}")'


def _allowing(line: str, entry: str, gates: list[Unit]) -> str:
    """An entry of an allow list; a capability under review keeps what it holds."""
    who = f'principal in Line::"{line}"'
    if ":" not in entry:
        gated = " || ".join(["false", *(f"({_has_tool(unit)})" for unit in gates)])
        return f'permit({who}, action, resource == Tool::"{entry}") unless {{ {gated} }};'
    gated = " || ".join(["false", *(f"({_holds(unit)})" for unit in gates)])
    when = f"when {{ {_grants(entry)} }} unless {{ {gated} }}"
    return f"permit({who}, action, resource is Event) {when};"


def _forbidding(line: str, entry: str) -> str:
    who = f'principal in Line::"{line}"'
    if entry == "*":
        return f"forbid({who}, action, resource);"
    if ":" not in entry:
        return f'forbid({who}, action, resource == Tool::"{entry}");'
    match = f'resource.name like "{entry}" || resource.old like "{entry}"'
    return f"forbid({who}, action, resource is Event) when {{ {match} }};"


def ranked_flags(role: Role, roles: Mapping[str, Role]) -> dict[str, bool]:
    """The flags of a profile: its own over its mixins' over its parents'; among equals off wins."""
    ranks = [
        [ranked_flags(roles[name], roles) for name in role.extends],
        [ranked_flags(roles[name], roles) for name in role.mixins],
        [dict(role.flags)],
    ]
    flags: dict[str, bool] = {}
    for equals in ranks:
        names = {name for one in equals for name in one}
        flags |= {name: all(one.get(name, True) for one in equals) for name in names}
    return flags
