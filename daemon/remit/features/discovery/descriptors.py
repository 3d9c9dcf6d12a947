"""Descriptors of what there is: events that can be called, beside what the folders hold."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from remit.features.discovery.graph import Graph
from remit.features.tools.formats import parameters
from remit.kernel.dispatch.tool_list import Documented
from remit.model.descriptor import (
    NOBODY,
    Descriptor,
    Parameter,
    SourceRef,
    parameters_of,
    tool_id,
)
from remit.model.event import SEARCH, Universe
from remit.model.upstream import server_of
from remit.policy.catalogue import Catalogue
from remit.policy.tool_names import tool_names

NOT_LOADED = "it is not loaded: extension:load does that"
_CHAIN = 16
"""How long a chain of things that need things may be."""
NOT_CALLABLE = "not callable: its manifest names no event"


def event_descriptors(
    handlers: Mapping[str, Documented],
    catalogue: Catalogue,
    unavailable: Mapping[str, str] | None = None,
) -> list[Descriptor]:
    """One descriptor for each event that can be called.

    Args:
        handlers: what answers the events.
        catalogue: the definitions in force.
        unavailable: upstream servers that do not answer now, and why.
    """
    names = tool_names(catalogue.universe)
    return [
        _outside(handlers[event], names[event], unavailable or {})
        if server_of(event)
        else _descriptor(handlers[event], names[event], catalogue)
        for event in sorted(handlers.keys() & names.keys())
        if event != SEARCH  # it is always in the list
    ]


def _descriptor(handler: Documented, tool: str, catalogue: Catalogue) -> Descriptor:
    spec = handler.spec
    capability = catalogue.capabilities.get(spec.capability or "")
    namespace = spec.name.partition(":")[0]
    return Descriptor(
        id=tool_id(spec.name),
        kind="tool",
        name=tool,
        description=handler.description or spec.summary,
        category=(capability.category if capability else "") or namespace,
        server=namespace,
        tags=capability.tags if capability else (),
        parameters=tuple(
            Parameter(p["name"], p["type"], p["description"], p["required"])
            for p in parameters(handler)
        ),
        available=not spec.deprecated,
        unavailable_because=spec.deprecated,
        has_side_effects=spec.effect != "read",
        is_effect_known=spec.effect is not None and spec.effect_stated,
        is_destructive=spec.effect == "destructive" and spec.effect_stated,
        event=spec.name,
        full_schema=handler.input_schema,
        source=SourceRef("event", place=spec.place),
    )


def _outside(handler: Documented, tool: str, unavailable: Mapping[str, str]) -> Descriptor:
    """A tool of an upstream server: found under that server's name, and missing when it is."""
    spec, server = handler.spec, server_of(handler.spec.name)
    return Descriptor(
        id=tool_id(spec.name),
        kind="tool",
        name=tool,
        display_name=spec.title,
        description=handler.description or spec.summary,
        category=server,
        server=server,
        parameters=parameters_of(handler.input_schema),
        available=server not in unavailable,
        unavailable_because=unavailable.get(server, ""),
        has_side_effects=spec.effect != "read",
        is_effect_known=spec.effect is not None and spec.effect_stated,
        is_destructive=spec.effect == "destructive" and spec.effect_stated,
        event=spec.name,
        full_schema=handler.input_schema,
        source=SourceRef("mcp", place=spec.place),
    )


def with_loaded(
    descriptors: tuple[Descriptor, ...], sources: Container[str]
) -> tuple[Descriptor, ...]:
    """The same, where an extension that has a module is available only once that is loaded."""
    return tuple(
        msgspec.structs.replace(one, available=False, unavailable_because=NOT_LOADED)
        if one.source.module and one.available and one.id not in sources
        else one
        for one in descriptors
    )


def with_callable(
    descriptors: tuple[Descriptor, ...], universe: Universe
) -> tuple[Descriptor, ...]:
    """The same, where a tool of a manifest can be called only by an event that there is."""
    reasons = {one.id: _not_callable(one, universe) for one in descriptors}
    return tuple(
        msgspec.structs.replace(one, available=False, unavailable_because=reasons[one.id])
        if reasons[one.id]
        else one
        for one in descriptors
    )


def _not_callable(one: Descriptor, universe: Universe) -> str:
    if one.kind != "tool" or one.source.kind != "manifest":
        return ""
    if not one.event:
        return NOT_CALLABLE
    name = universe.canonical(one.event)
    pushed = universe.specs[name].pushed if name in universe.index else True
    return f"not callable: there is no event {one.event} to call" if pushed else ""


def bound_to_files(descriptors: tuple[Descriptor, ...], known: set[str]) -> tuple[Descriptor, ...]:
    """The same, bound only to what the files define: nobody makes itself a holder of the rest."""
    return tuple(
        msgspec.structs.replace(
            one, capabilities=tuple(n for n in one.capabilities if n in known) or (NOBODY,)
        )
        if not known.issuperset(one.capabilities)
        else one
        for one in descriptors
    )


def join(events: list[Descriptor], others: tuple[Descriptor, ...]) -> list[Descriptor]:
    """Events beat files of the same id: no text may stand in for what is really called."""
    taken = {descriptor.id for descriptor in events}
    return events + [descriptor for descriptor in others if descriptor.id not in taken]


def with_needs(descriptors: Sequence[Descriptor]) -> list[Descriptor]:
    """The same, where what needs something that cannot be used now cannot be used either."""
    graph, found = Graph(descriptors, {}), list(descriptors)
    for _ in range(_CHAIN):
        changed = False
        for row, needed in graph.depends.items():
            away = [found[at].name for at in needed if not found[at].available]
            if away and found[row].available:
                because = f"needs {', '.join(away)}, which cannot be used now"
                found[row] = msgspec.structs.replace(
                    found[row], available=False, unavailable_because=because
                )
                changed = True
        if not changed:
            break
    return found
