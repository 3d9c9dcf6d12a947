"""Events as descriptors: what can be called can be found."""

from collections.abc import Mapping

from remit.features.tools.formats import parameters
from remit.kernel.dispatch.tool_list import Documented
from remit.model.descriptor import Descriptor, Parameter, SourceRef, parameters_of, tool_id
from remit.model.event import SEARCH
from remit.model.upstream import server_of
from remit.policy.catalogue import Catalogue
from remit.policy.tool_names import tool_names


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
        event=spec.name,
        full_schema=handler.input_schema,
        source=SourceRef("mcp", place=spec.place),
    )
