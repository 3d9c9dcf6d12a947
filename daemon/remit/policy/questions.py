"""What a capability gives, with all it requires."""

from typing import Any

from remit.errors import NotFoundError
from remit.model.limits import NO_LIMITS
from remit.model.names import did_you_mean
from remit.policy.catalogue import Catalogue


def capability_id(catalogue: Catalogue, name: str) -> str:
    """The canonical id of a capability.

    Raises:
        NotFoundError: no capability has that name.
    """
    if name not in catalogue.names:
        hint = did_you_mean(name, catalogue.capabilities)
        raise NotFoundError(f"there is no capability {name!r}", hint=hint)
    return catalogue.names[name]


def gives(catalogue: Catalogue, name: str) -> dict[str, Any]:
    """Everything a capability gives, with all it requires."""
    found = capability_id(catalogue, name)
    definition = catalogue.capabilities[found]
    closure = catalogue.closures[found]
    bits = 0
    tools: set[str] = set()
    limits = NO_LIMITS
    for member in closure:
        bits |= catalogue.own_events[member]
        tools.update(ref.name for ref in catalogue.capabilities[member].claude_tools)
        limits = limits.smallest(catalogue.capabilities[member].resource_limits)
    return {
        "capability": found,
        "description": definition.description,
        "status": definition.status,
        "events": catalogue.universe.names_in(bits),
        "own_events": catalogue.universe.names_in(catalogue.own_events[found]),
        "claude_tools": sorted(tools),
        "requires": [member for member in closure if member != found],
        "limits": limits.to_json(),
        **said(system_prompt=definition.system_prompt, config_schema=definition.config_schema),
        "security_review_required": definition.security_review_required,
    }


def said(**fields: Any) -> dict[str, Any]:
    """The fields that say something: what nobody wrote is absent, and not empty."""
    return {name: value for name, value in fields.items() if value not in (None, "")}
