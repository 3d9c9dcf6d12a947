"""system:* — is it alive, what is there, how is it used."""

from typing import Any, Literal

import msgspec

from remit import __version__
from remit.features.tools.formats import TextFormat, describe_event, example, one_line, parameters
from remit.kernel.dispatch.bills import Kind
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.counters import Load
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.tool_list import shown_tools, tool_list
from remit.kernel.dispatch.visibility import unseen
from remit.model.schema import Name
from remit.text.words import estimate_tokens

MOST_AGENTS = 100
MOST_PROBLEMS = 100

Level = Literal["summary", "namespace", "full"]


@event_handler("system:health", capability="base", effect="read", inline=True, requires_auth=False)
def health(ctx: Context) -> dict[str, Any]:
    """Tell whether the daemon is well, and which revision is in force."""
    kernel, caller = ctx.kernel, ctx.principal.id
    fleet = kernel.authority.fleet
    is_stale, is_full = kernel.authority.is_stale, kernel.database.is_full
    return {
        "status": "disk_full" if is_full else "stale" if is_stale else "ok",
        "version": __version__,
        "revision": ctx.catalogue.revision,
        "uptime": round(kernel.clock() - kernel.counters.started_at, 3),
        "stale": is_stale,
        "disk_full": is_full,
        "agents": len(fleet) if ctx.principal.is_operator else fleet.count_below(caller),
    }


@event_handler("system:help", capability="base", effect="read")
async def help_(
    ctx: Context,
    event: Name | None = None,
    format: TextFormat = "verbose",  # noqa: A002
) -> dict[str, Any]:
    """Explain one event, or list those you may use.

    Args:
        event: the event in question; all of yours in one line each when absent.
        format: how much to say.
    """
    if event is None:
        return await discover(ctx, level="namespace", format=format)
    name = ctx.catalogue.universe.canonical(event)
    if name not in ctx.grant.events:
        raise unseen(event, ctx.grant.events, "event", purpose="use")
    handler = ctx.handlers[name]
    answer: dict[str, Any] = {"event": name}
    if format == "verbose":
        answer = describe_event(handler, ctx.catalogue, ctx.grant)
    elif format == "mcp":
        answer["tools"] = (await _tools(ctx, only={name}))["tools"]
    else:
        answer["help"] = one_line(handler)
        answer |= {"example": example(handler)} if format == "compact" else {}
    _charge(ctx, "details", answer)
    return answer


@event_handler("system:discover", capability="base", effect="read")
async def discover(
    ctx: Context,
    level: Level = "summary",
    namespace: Name | None = None,
    event: Name | None = None,
    module: Name | None = None,
    format: TextFormat = "verbose",  # noqa: A002
) -> dict[str, Any]:
    """Show what you may use, from a count a namespace to everything about each event.

    Args:
        level: summary (counts), namespace (one line each) or full.
        namespace: only events of this namespace.
        event: only this event.
        module: only events whose handler stands in this module.
        format: verbose, compact, ultra_compact, or mcp for a list of tools.
    """
    names = _selected(ctx, namespace=namespace, event=event, module=module)
    head = {"level": level, "total": len(names), "revision": ctx.catalogue.revision}
    if format == "mcp":
        only = None if len(names) == len(ctx.grant.events) else frozenset(names)
        listed = await _tools(ctx, thin=level != "full", only=only)
        tokens = listed["tokens"]
        ctx.kernel.bills.charge(ctx.principal.id, "lists", tokens["sent"], tokens["full_dump"])
        return head | listed
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.partition(":")[0], []).append(name)
    if level == "summary":
        answer: dict[str, Any] = head | {
            "namespaces": {space: len(found) for space, found in groups.items()}
        }
    elif format == "ultra_compact":
        lines = [f"{s}: {' '.join(n[len(s) + 1 :] for n in found)}" for s, found in groups.items()]
        answer = head | {"text": "\n".join(lines)}
    else:
        answer = head | {
            "namespaces": {
                space: [_entry(ctx, name, level=level, format=format) for name in found]
                for space, found in groups.items()
            }
        }
    _charge(ctx, "lists", answer)
    return answer


def _charge(ctx: Context, kind: Kind, answer: dict[str, Any]) -> None:
    tokens = estimate_tokens(msgspec.json.encode(answer).decode())
    ctx.kernel.bills.charge(ctx.principal.id, kind, tokens)


async def _tools(
    ctx: Context, *, thin: bool = False, only: frozenset[str] | set[str] | None = None
) -> dict[str, Any]:
    """The tools of the caller, by the names that it is shown from now on."""
    handlers, catalogue = ctx.handlers, ctx.catalogue
    events = shown_tools(handlers, catalogue, ctx.grant)
    names = await ctx.kernel.names.give(ctx.principal, catalogue.universe, events)
    return tool_list(handlers, catalogue, ctx.grant, names=names, thin=thin, only=only)


def _selected(
    ctx: Context, *, namespace: str | None, event: str | None, module: str | None
) -> list[str]:
    """The caller's events that pass the filters. Filters only ever narrow."""
    names = sorted(ctx.grant.events)
    if namespace is not None:
        names = [name for name in names if name.startswith(f"{namespace}:")]
    if event is not None:
        wanted = ctx.catalogue.universe.canonical(event)
        names = [name for name in names if name == wanted]
    if module is not None:
        handlers = ctx.handlers
        names = [name for name in names if handlers[name].module == module]
    return names


def _entry(ctx: Context, name: str, *, level: Level, format: TextFormat) -> Any:  # noqa: A002
    handler = ctx.handlers[name]
    if format == "compact":
        return one_line(handler)
    if level == "full":
        return describe_event(handler, ctx.catalogue, ctx.grant)
    names = [parameter["name"] for parameter in parameters(handler)]
    return {"event": name, "summary": handler.spec.summary, "parameters": names}


@event_handler("system:stats", capability="observe", effect="read", inline=True)
def stats(ctx: Context) -> dict[str, Any]:
    """Count what happened since the start: your events, and you and your agents."""
    kernel = ctx.kernel
    counters = kernel.counters
    by_event = {
        name: count for name, count in sorted(counters.by_event.items()) if name in ctx.grant.events
    }
    answer: dict[str, Any] = {
        "by_event": by_event,
        "by_agent": _by_agent(ctx),
        "revision": ctx.catalogue.revision,
    }
    if ctx.sees_everything:
        answer |= {
            "requests": counters.requests,
            "denied": counters.denied,
            "denied_repeats": ctx.kernel.audit_log.denials.counted,
            "failed": counters.failed,
            "internal_errors": counters.internal_errors,
            "timeouts": counters.timeouts,
            "cancelled": counters.cancelled,
            "file_problems": [
                problem.to_json() | {"severity": problem.severity}
                for problems in kernel.file_problems
                for problem in problems()
            ][:MOST_PROBLEMS],
        }
        if (traffic := ctx.kernel.traffic) is not None:
            answer |= {
                "clients": traffic.clients,
                "dropped": traffic.dropped,
                "evicted": traffic.evicted,
                "crowded": traffic.crowded,
                "silenced": traffic.silenced,
            }
    return answer


def _by_agent(ctx: Context) -> dict[str, dict[str, int]]:
    """The busiest of those whom the caller may ask about; only the living are counted."""
    kernel = ctx.kernel
    tallies, fleet = kernel.counters.by_caller, kernel.authority.fleet
    names = tallies.keys() if ctx.principal.is_operator else fleet.subtree(ctx.principal.id)
    living = [name for name in names if name in tallies and fleet.principal(name) is not None]
    living.sort(key=lambda name: (-tallies[name].calls, name))
    found = {}
    for name in living[:MOST_AGENTS]:
        load = kernel.load(name) if kernel.load is not None else Load()
        tally = tallies[name]
        found[name] = {
            "calls": tally.calls,
            "denied": tally.denied,
            "queue": load.queue,
            "dropped": load.dropped,
        }
    return found
