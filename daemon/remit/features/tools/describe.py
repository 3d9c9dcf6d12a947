"""Events described for readers of different patience: people, agents, models that pay by token."""

from collections.abc import Mapping
from typing import Any, Literal

from remit.kernel.dispatch.docstrings import Documented
from remit.model.grant import Grant
from remit.policy.catalogue import Catalogue
from remit.policy.queries import givers_of

TextFormat = Literal["verbose", "compact", "ultra_compact", "mcp"]

_EXAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "array": [],
    "object": {},
}


def describe_event(handler: Documented, catalogue: Catalogue, grant: Grant) -> dict[str, Any]:
    """Everything a caller needs to use an event well."""
    spec = handler.spec
    held = set(grant.capabilities)
    return {
        "event": spec.name,
        "summary": spec.summary,
        "description": handler.description,
        "parameters": parameters(handler),
        "example": example(handler),
        "capabilities": [name for name in givers_of(catalogue, spec.name) if name in held],
        "flags": _flags(handler),
        "triggers": [event for event in spec.triggers if event in grant.events],
        "answer": handler.answer_schema,
    }


def _flags(handler: Documented) -> dict[str, Any]:
    spec = handler.spec
    return {
        "effect": spec.effect,
        "requires_auth": spec.requires_auth,
        "resource_intensive": spec.resource_intensive,
        "open_world": spec.open_world,
        "wildcard": spec.wildcard,
        "pushed": spec.pushed,
        "timeout": spec.timeout,
        "since": spec.since,
        "aliases": list(spec.aliases),
        "deprecated": spec.deprecated,
    }


def parameters(handler: Documented) -> list[dict[str, Any]]:
    """The fields of a request, in the order in which they are declared."""
    schema = handler.input_schema
    required = set(schema.get("required", ()))
    found = []
    for name, field in _fields(schema).items():
        entry = {
            "name": name,
            "type": _type_name(field),
            "required": name in required,
            "description": field.get("description", ""),
        }
        if "default" in field:
            entry["default"] = field["default"]
        found.append(entry)
    return found


def _fields(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields with their schemas; upstream tools may write `true` for one of anything."""
    fields = schema.get("properties", {}).items()
    return {name: field if isinstance(field, Mapping) else {} for name, field in fields}


def _type_name(field: Any) -> str:
    if not isinstance(field, Mapping):
        return "any"
    if "anyOf" in field:
        return " | ".join(_type_name(choice) for choice in field["anyOf"])
    if "enum" in field:
        return " | ".join(str(choice) for choice in field["enum"])
    if "$ref" in field:
        return str(field["$ref"].rsplit("/", 1)[-1])
    if field.get("type") == "array" and field.get("items"):
        return f"list of {_type_name(field['items'])}"
    return str(field.get("type", "any"))


def example(handler: Documented) -> dict[str, Any]:
    """A smallest request that has the right shape."""
    schema = handler.input_schema
    fields = _fields(schema)
    return {name: _example_of(fields.get(name, {})) for name in schema.get("required", ())}


def _example_of(field: Any) -> Any:
    if not isinstance(field, Mapping):
        return "text"
    if field.get("enum"):
        return field["enum"][0]
    if "anyOf" in field:
        return _example_of(field["anyOf"][0])
    return _EXAMPLES.get(str(field.get("type")), "text")


def one_line(handler: Documented) -> str:
    """`event(required, optional?) - summary`; an event that is pushed has an arrow before it."""
    names = [p["name"] + ("" if p["required"] else "?") for p in parameters(handler)]
    mark = "<- " if handler.spec.pushed else ""
    return f"{mark}{handler.spec.name}({', '.join(names)}) - {handler.spec.summary}"
