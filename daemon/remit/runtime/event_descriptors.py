"""Events as descriptors: what can be called can be found."""

from collections.abc import Mapping

from remit.model.descriptor import Descriptor, Parameter, SourceRef, tool_id
from remit.policy.catalogue import Catalogue
from remit.policy.toolnames import tool_names
from remit.runtime.describe import Documented, parameters

DISCOVER = "discovery:discover"
"""Not found by itself: it is always in the list."""


def event_descriptors(handlers: Mapping[str, Documented], catalogue: Catalogue) -> list[Descriptor]:
    """One descriptor for each event that can be called."""
    names = tool_names(catalogue.universe)
    return [
        _descriptor(handlers[event], names[event], catalogue)
        for event in sorted(handlers.keys() & names.keys())
        if event != DISCOVER
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
        event=spec.name,
        full_schema=handler.input_schema,
        source=SourceRef("event", place=spec.place),
    )
