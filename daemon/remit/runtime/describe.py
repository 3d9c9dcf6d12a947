"""Events described for readers of different patience: people, agents, models that pay by token."""

from collections.abc import Container, Iterable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from remit.model.event import EventSpec
from remit.model.grant import Grant
from remit.model.tokens import estimate_tokens
from remit.policy.catalogue import Catalogue
from remit.policy.explain import givers_of
from remit.policy.toolnames import tool_names

TextFormat = Literal["verbose", "compact", "ultra_compact", "mcp"]

_EXAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "array": [],
    "object": {},
}


class Documented(Protocol):
    """What is known about a handler besides how to call it."""

    @property
    def spec(self) -> EventSpec:
        """Its event and flags."""

    @property
    def module(self) -> str:
        """The module it stands in."""

    @property
    def description(self) -> str:
        """Its docstring without the sections about arguments."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of requests."""

    @property
    def answer_schema(self) -> dict[str, Any]:
        """The JSON Schema of answers; empty when nobody said."""


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
    for name, field in schema.get("properties", {}).items():
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


def _type_name(field: Mapping[str, Any]) -> str:
    if "anyOf" in field:
        return " | ".join(_type_name(choice) for choice in field["anyOf"])
    if "enum" in field:
        return " | ".join(str(choice) for choice in field["enum"])
    if "$ref" in field:
        return str(field["$ref"].rsplit("/", 1)[1])
    if field.get("type") == "array" and field.get("items"):
        return f"list of {_type_name(field['items'])}"
    return str(field.get("type", "any"))


def example(handler: Documented) -> dict[str, Any]:
    """A smallest request that has the right shape."""
    schema = handler.input_schema
    fields = schema.get("properties", {})
    return {name: _example_of(fields[name]) for name in schema.get("required", ())}


def _example_of(field: Mapping[str, Any]) -> Any:
    if "enum" in field:
        return field["enum"][0]
    if "anyOf" in field:
        return _example_of(field["anyOf"][0])
    return _EXAMPLES.get(str(field.get("type")), "text")


def one_line(handler: Documented) -> str:
    """`event(required, optional?) - summary`; an event that is pushed has an arrow before it."""
    names = [p["name"] + ("" if p["required"] else "?") for p in parameters(handler)]
    mark = "<- " if handler.spec.pushed else ""
    return f"{mark}{handler.spec.name}({', '.join(names)}) - {handler.spec.summary}"


def tool_list(
    handlers: Mapping[str, Documented],
    catalogue: Catalogue,
    grant: Grant,
    *,
    thin: bool = False,
    only: Container[str] | None = None,
) -> dict[str, Any]:
    """The tools of a holder with their token bill; thin ones come without schema.

    `only` narrows what is sent; the full dump stays that of everything the holder has.
    """
    names = tool_names(catalogue.universe)
    events = sorted(grant.exposed & handlers.keys() & names.keys())
    full = [
        {
            "name": names[event],
            "event": event,
            "description": handlers[event].description,
            "input_schema": handlers[event].input_schema,
        }
        for event in events
    ]
    sent: list[dict[str, Any]] = full
    if thin:
        sent = [
            {"name": names[event], "event": event, "description": handlers[event].spec.summary}
            for event in events
        ]
    if only is not None:
        sent = [tool for tool in sent if tool["event"] in only]
    return {"tools": sent, "tokens": {"sent": _cost(sent), "full_dump": _cost(full)}}


def _cost(tools: Iterable[Mapping[str, Any]]) -> int:
    return estimate_tokens(msgspec.json.encode(list(tools)).decode())
