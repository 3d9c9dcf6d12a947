"""The answers of discovery, in the shapes that callers use."""

from typing import TYPE_CHECKING, Any

import msgspec

from remit.errors import DefinitionError
from remit.features.discovery.texts import detail_text
from remit.model.descriptor import Descriptor, meta_tool
from remit.model.event import SEARCH
from remit.text.fence import fenced

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine, Found
    from remit.features.discovery.view import View


def present(
    found: "Found", engine: "Engine", *, revision: int, render: bool = False
) -> dict[str, Any]:
    """The answer of `discovery:discover`."""
    tiers = found.tiers
    answer = {
        "fits": bool(found.hits),
        "map": tiers.map,
        "summary": tiers.summary,
        "detail": tiers.detail,
        "capabilities": [_listed(found, at) for at in range(len(found.hits))],
        "tokens": msgspec.structs.asdict(tiers.tokens) | {"full_dump": found.full_dump},
        "skipped": [msgspec.structs.asdict(one) for one in tiers.skipped],
        "total_indexed": found.view.total,
        "ranker": {"name": engine.embedder_name, "vectors": found.view.index.vector_state},
        "revision": revision,
    }
    if render:
        answer["prompt"] = engine.prompt(found)
    return answer


def _listed(found: "Found", at: int) -> dict[str, Any]:
    hit = found.hits[at]
    descriptor = found.view.descriptor(hit.row)
    listed: dict[str, Any] = {
        "id": descriptor.id,
        "kind": descriptor.kind,
        "name": descriptor.name,
        "relevance": round(hit.relevance, 4),
    }
    if hit.pulled_in_by is not None:
        listed["pulled_in_by"] = found.view.descriptor(hit.pulled_in_by).id
    because = _why_not(found.view, hit.row)
    return listed | ({"unavailable_because": because} if because else {})


def turn_tools(
    found: "Found", engine: "Engine", budget: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tools of a turn inside the budget, the one to search with last; and those left out."""
    search = {"event": SEARCH, **meta_tool()}
    left = budget - _cost(engine, search)
    listed, skipped = [], []
    for descriptor in found.descriptors:
        is_away = descriptor.source.kind == "manifest" and not descriptor.available
        if not descriptor.event or is_away:
            continue
        tool = {
            "name": descriptor.name,
            "event": descriptor.event,
            "description": descriptor.description,
            "input_schema": descriptor.full_schema or {"type": "object"},
        }
        cost = _cost(engine, tool)
        if cost <= left:
            listed.append(tool)
            left -= cost
        else:
            skipped.append({"id": descriptor.id, "reason": f"{cost} tokens do not fit"})
    return [*listed, search], skipped


def _cost(engine: "Engine", tool: dict[str, Any]) -> int:
    return engine.counter.count(msgspec.json.encode(tool).decode()) + 1


def describe_found(
    engine: "Engine", view: "View", row: int, *, places: bool, revision: int, render: bool = False
) -> dict[str, Any]:
    """The answer of `discovery:describe`: all of one descriptor, its text and schema included."""
    descriptor = view.descriptor(row)
    content = _content(engine, descriptor)
    shown: dict[str, Any] = {
        "id": descriptor.id,
        "kind": descriptor.kind,
        "name": descriptor.name,
        "display_name": descriptor.title,
        "description": descriptor.description,
        "category": descriptor.category,
        "tags": list(descriptor.tags),
        "required_secrets": list(descriptor.required_secrets),
        "required_tools": list(descriptor.required_tools),
        "available": view.index.is_available(row),
        "unavailable_because": _why_not(view, row),
        "has_side_effects": descriptor.has_side_effects,
        "effect_known": descriptor.is_effect_known,
        "event": descriptor.event or None,
        "full_schema": descriptor.full_schema,
        "full_content": content,
        "related": _related(view, row),
        "revision": revision,
    }
    if render:
        missing = view.index.graph.missing.get(row, ())
        shown["prompt"] = fenced(detail_text(descriptor, content or "", missing))
    place = descriptor.source.place
    source: dict[str, Any] = {"kind": descriptor.source.kind}
    if places and place is not None:
        source |= {"file": place.file, "line": place.line, "column": place.column}
    return shown | {"source_ref": source}


def _content(engine: "Engine", descriptor: Descriptor) -> str | None:
    if not descriptor.source.content_file:
        return None
    try:
        return engine.content(descriptor)
    except (OSError, DefinitionError):  # it went away since it was indexed; the rest is still true
        return None


def _why_not(view: "View", row: int) -> str:
    missing = view.index.graph.missing.get(row, ())
    needs = f"needs {', '.join(missing)}, which is not here" if missing else ""
    return view.index.descriptors[row].unavailable_because or needs


def _related(view: "View", row: int) -> list[str]:
    found = [other for other, _weight in view.index.graph.neighbours(row) if view.sees(other)]
    return [view.index.descriptors[other].id for other in found]
