"""A server made from a dump of a real one: `from_dump.py FILE [TOOLS A PAGE]`; calls are echoed.

Where a tool promises an output, the least that keeps the promise is answered too.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.features.upstreams.client.servers.rpc import MODERN, Json, Server, answer, text
else:  # the folder of a script that is run is on the path
    from rpc import MODERN, Json, Server, answer, text

DUMP = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
PAGE = int(sys.argv[2]) if len(sys.argv) > 2 else 20
PROTOCOL = DUMP["protocol"] or "2025-11-25"
PROMISED = {tool["name"]: tool.get("outputSchema") for tool in DUMP["tools"]}
PLAIN = {"array": [], "boolean": False, "null": None, "string": ""}


def least(schema: Json, whole: Json) -> Any:
    """A value that fits, for the schemas that real servers write."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "$ref" in schema:
        return least(target(schema["$ref"], whole), whole)
    for choices in (schema[key] for key in ("anyOf", "oneOf", "allOf") if key in schema):
        return least(choices[0], whole)
    return least_of_its_kind(schema, whole)


def target(reference: str, whole: Json) -> Any:
    found: Any = whole
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def least_of_its_kind(schema: Json, whole: Json) -> Any:
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind != "object":
        return PLAIN[kind]
    inside = schema.get("properties", {})
    return {name: least(inside.get(name, {}), whole) for name in schema.get("required", ())}


def echo(request: Json) -> None:
    params = request["params"]
    name = params["name"]
    result = text(json.dumps({"tool": name, "arguments": params.get("arguments", {})}))
    if PROMISED.get(name) is not None:
        result["structuredContent"] = least(PROMISED[name], PROMISED[name])
    if PROTOCOL == MODERN:
        result["resultType"] = "complete"
    answer(request, result)


Server(DUMP["tools"], echo, protocol=PROTOCOL, page=PAGE).serve()
