"""Capabilities that were made at run time: what they could give, and what they do give now.

INVARIANT: nobody gets through one of them what its author does not hold at that moment. So in the
catalogue they give nothing (`own_events` and `closures` are empty of it); what they could give is a
share beside the grant, and is added only under the present rights of the author.
"""

from collections.abc import Callable, Iterable

import msgspec

from remit.model.capability import Capability, RuntimeCapability
from remit.model.grant import Grant, Share
from remit.model.limits import NO_LIMITS, Limits
from remit.model.place import Problem
from remit.policy.catalogue import Catalogue, CompiledRuntimeCapability, mount_conflicts


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
    """All that a made capability requires, directly or not, as far as it is grantable; sorted."""
    names = (
        catalogue.names[ref.name] for ref in definition.requires if ref.name in catalogue.names
    )
    closures = (
        catalogue.closures[name] for name in names if name not in catalogue.runtime_capabilities
    )
    return tuple(sorted(frozenset().union(*closures)))


Ceiling = Callable[[str, str], Grant | None]
"""What an author, by name and key, holds without anything made at run time; None: everything."""


def with_shares(catalogue: Catalogue, grant: Grant, ceiling_of: Ceiling) -> Grant:
    """A grant with what the authors of its shares hold of them now."""
    found = msgspec.structs.replace(grant, shares=())
    for share in grant.shares:
        found = _added(catalogue, found, share, ceiling_of(share.author, share.author_key))
    return found


def present_share(share: Share, ceiling: Grant | None) -> tuple[int, frozenset[str]]:
    """The events and model tools of a share that its author holds now."""
    if ceiling is None:
        return share.bits, share.claude_tools
    return share.bits & ceiling.bits, share.claude_tools & ceiling.claude_tools


def _added(catalogue: Catalogue, grant: Grant, share: Share, ceiling: Grant | None) -> Grant:
    if catalogue.runtime_capabilities[share.capability].inert or (
        ceiling is not None and not ceiling.bits
    ):
        held = tuple(name for name in grant.capabilities if name != share.capability)
        return msgspec.structs.replace(grant, capabilities=held)  # its words and files go as well
    bits, tools = present_share(share, ceiling)
    universe = catalogue.universe
    fresh = bits & ~grant.bits
    waiting = frozenset(universe.names_in(fresh & share.waiting))
    limits = NO_LIMITS
    if ceiling is not None:
        # What the author may do only with an approval, or in a part of the state, nobody does
        # through it without.
        waiting |= ceiling.approval_required.intersection(universe.names_in(fresh))
        limits = Limits(state_prefixes=ceiling.limits.state_prefixes) if fresh else limits
    return msgspec.structs.replace(
        grant,
        bits=grant.bits | bits,
        events=grant.events.union(universe.names_in(fresh)),
        exposed=grant.exposed.union(universe.names_in(bits & share.exposed)),
        pinned=grant.pinned.union(universe.names_in(bits & share.pinned)),
        claude_tools=grant.claude_tools | tools,
        approval_required=grant.approval_required | waiting,
        limits=grant.limits.smallest(limits),
    )
