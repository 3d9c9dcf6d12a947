"""Questions to discovery and its answers, in the shapes that callers use."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from remit.errors import DefinitionError
from remit.model.descriptor import Descriptor, DescriptorKind, meta_tool
from remit.model.event import SEARCH
from remit.model.grant import Grant
from remit.text.fence import fenced

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine, Found, Options
    from remit.features.discovery.view import View

Tokens = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=50)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

_BUDGETS = {
    "map_tokens": "map",
    "summary_tokens": "summary",
    "detail_tokens": "detail",
    "total_tokens": "total",
    "top_k": "top_k",
    "top_n": "top_n",
}


class DiscoveryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one question changes of what is usual; None: nothing."""

    map_tokens: Tokens | None = None
    summary_tokens: Tokens | None = None
    detail_tokens: Tokens | None = None
    total_tokens: Tokens | None = None
    top_k: Count | None = None
    top_n: Count | None = None
    min_relevance: Share | None = None
    use_graph: bool | None = None


class Filters(msgspec.Struct, frozen=True):
    """What a question leaves out."""

    kind: DescriptorKind | None = None
    category: str | None = None
    only_available: bool = False


def options_of(
    usual: DiscoveryConfig, config: DiscoveryConfig | None, grant: Grant, filters: Filters
) -> "Options":
    """The options of one question; no wish goes beyond the limit of the grant."""
    from remit.features.discovery.engine import Options  # noqa: PLC0415 - numpy: only where one searches
    from remit.features.discovery.tiers import Budgets  # noqa: PLC0415 - the same

    wished = _given(usual) | _given(config)
    limits = {_BUDGETS[name]: wished.pop(name) for name in _BUDGETS.keys() & wished.keys()}
    budgets = Budgets(**limits)
    ceiling = grant.limits.max_tokens_per_turn
    if ceiling is not None and ceiling < budgets.total:
        budgets = msgspec.structs.replace(budgets, total=ceiling)
    return Options(
        filters.kind, filters.category, filters.only_available, budgets=budgets, **wished
    )


def _given(config: DiscoveryConfig | None) -> dict[str, Any]:
    found = msgspec.structs.asdict(config) if config is not None else {}
    return {name: value for name, value in found.items() if value is not None}


def present(
    found: "Found", engine: "Engine", *, revision: int, render: bool = False
) -> dict[str, Any]:
    """The answer of `discovery:discover`."""
    tiers = found.tiers
    answer = {
        "map": tiers.map,
        "summary": tiers.summary,
        "detail": tiers.detail,
        "capabilities": [_listed(found, at) for at in range(len(found.hits))],
        "tokens": msgspec.structs.asdict(tiers.tokens) | {"full_dump": found.full_dump},
        "skipped": [msgspec.structs.asdict(one) for one in tiers.skipped],
        "total_indexed": found.view.total,
        "revision": revision,
    }
    if render:
        from remit.features.discovery.tiers import render as render_tiers  # noqa: PLC0415 - see above

        answer["prompt"] = render_tiers(tiers, engine.counter).text
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
    from remit.features.discovery.engine import is_available  # noqa: PLC0415 - see above

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
        "available": is_available(view.index, row),
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
        from remit.features.discovery.texts import detail_text  # noqa: PLC0415 - see above

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
