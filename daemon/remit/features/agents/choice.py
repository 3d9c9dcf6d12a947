"""The capabilities that an agent is given, in order and with their configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from remit.errors import REQUEST, InvalidDataError, RemitError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.visibility import sight, unseen, visible_capabilities
from remit.model.grant import Grant
from remit.model.names import ToolEntry
from remit.model.principal import AgentSpec, CapabilityChoice
from remit.model.schema import config_mistakes, shown
from remit.policy.catalogue import Catalogue
from remit.policy.delegate import request_warnings, unconfigured

Asked = dict[str, bool] | tuple[str | CapabilityChoice, ...]


class Choice(msgspec.Struct, frozen=True):
    """The capabilities of a request, checked and in its order."""

    capabilities: dict[str, bool]
    configs: dict[str, dict[str, Any]]


def choose(ctx: Context, asked: Asked) -> Choice:
    """Read flags, or a list whose order is the priority.

    Raises:
        InvalidDataError: a capability is unknown or named twice, or a configuration does not fit.
    """
    choice = Choice({}, {})
    seen: dict[str, str] = {}
    for path, name, on, config in _entries(asked):
        canonical = _known(ctx, name, path)
        if canonical in seen:
            message = f"{name!r} and {seen[canonical]!r} are one capability"
            raise InvalidDataError(message, hint="name it once", details={"path": path})
        seen[canonical] = name
        choice.capabilities[name] = on
        if config:
            _check_config(ctx.catalogue, canonical, config, path)
            choice.configs[name] = config
    return choice


def _entries(asked: Asked) -> Iterator[tuple[str, str, bool, dict[str, Any]]]:
    if isinstance(asked, dict):
        for name, on in asked.items():
            yield f"$.capabilities.{name}", name, on, {}
        return
    for at, entry in enumerate(asked):
        path = f"$.capabilities[{at}]"
        if isinstance(entry, str):
            yield path, entry, True, {}
        else:
            yield path, entry.ref, True, entry.config


def _known(ctx: Context, name: str, path: str) -> str:
    """The id of a capability that the caller may see."""
    seen = _seen(ctx)
    found = ctx.catalogue.names.get(name, "")
    if found not in seen:
        raise unseen(name, seen, "capability", details={"path": path}, error=InvalidDataError)
    if found != name:
        ctx.told_old_name("capability", name, found)
    return found


def _seen(ctx: Context) -> set[str]:
    """The ids of the capabilities that the caller may see."""
    held = sight(ctx)
    return {*visible_capabilities(ctx, held), *held.capabilities}


def _check_config(catalogue: Catalogue, name: str, config: dict[str, Any], path: str) -> None:
    schema = catalogue.capabilities[name].config_schema
    if schema is None:
        raise InvalidDataError(
            f"{name!r} has no config_schema, so it takes no configuration",
            hint="leave the configuration out",
            details={"path": f"{path}.config"},
        )
    mistakes = config_mistakes(schema, config)
    if mistakes:
        first = mistakes[0]
        raise InvalidDataError(
            f"the configuration of {name!r} does not fit: {first.message}",
            hint=f"capability:get tells its schema: {{id: {name}}}",
            details={"path": shown(first.path, f"{path}.config")},
        )


def check_configured(ctx: Context, spec: AgentSpec, asked: Asked) -> None:
    """Refuse capabilities without the configuration that their schema needs.

    Raises:
        InvalidDataError: one has none, neither by what is asked for nor by the profile.
    """
    if spec.inherit:
        return
    for missing in unconfigured(ctx.catalogue, spec):
        problem, path = missing.problem, "$.variables"
        if problem.place == REQUEST:
            named = (at for at, name, *_ in _entries(asked) if name == missing.flag.capability)
            path = next(named, "$.capabilities")
        message = problem.message
        hint = f"capability:get tells its schema: {{id: {missing.capability}}}"
        if missing.brought and missing.capability not in _seen(ctx):
            message = f"{missing.flag.capability!r} brings something that must be configured"
            hint = "choose another one, or let an operator give it"
        raise InvalidDataError(message, hint=hint, details={"path": path})


def spec_warnings(
    ctx: Context, spec: AgentSpec, agent: str, reviewed: frozenset[str] = frozenset()
) -> list[dict[str, str]]:
    """What an agent is given that works differently from what its giver may think.

    Only what the giver named itself, and nothing that it could not find out: for one who does not
    see everything, what it does not hold is the same as what does not exist.
    """
    found = [*_old_names(ctx, spec), *status_warnings(ctx.catalogue, spec.capabilities)]
    if spec.inherit:
        return found
    try:
        problems, own = request_warnings(ctx.catalogue, spec, reviewed)
    except RemitError:  # its profile went away meanwhile, and `why` says so
        return found
    waiting = {*own.pending_review}
    for name, on in spec.capabilities.items():
        if on and ctx.catalogue.names.get(name) in waiting:
            message = f"{name!r} waits for a security review for {agent!r}: it gives nothing yet"
            hint = f"an operator approves it with: remit review approve {agent} {name}"
            told = {"capability": name, "code": "review_pending", "message": message}
            found.append(told | {"hint": hint})
    found += _dropped(ctx, spec, own)
    if not ctx.sees_everything:
        found += _idle_patterns(ctx, spec)
    else:
        known = {"review_pending", "old_name", *STATUS_CODES}
        found += [
            {"code": one.code, "message": one.message, "hint": one.hint}
            for one in problems
            if one.code not in known
        ]
    return found


def _idle_patterns(ctx: Context, spec: AgentSpec) -> list[dict[str, str]]:
    """Patterns that cover nothing of what their giver holds, whether or not it exists."""
    found = []
    for text in spec.additional_tools:
        pattern = ToolEntry.parse(text, REQUEST).pattern
        if pattern is not None and not any(map(pattern.covers, ctx.grant.events)):
            message = f"{text!r} matches nothing that you hold: it gives nothing"
            found.append({"code": "dead_pattern", "message": message, "tool": text})
    return found


def _old_names(ctx: Context, spec: AgentSpec) -> list[dict[str, str]]:
    """Capabilities and tools under an old name, as far as the giver may know the present one."""
    catalogue, everything = ctx.catalogue, ctx.sees_everything
    used = [("capability", name, catalogue.names.get(name, name)) for name in spec.capabilities]
    seen = frozenset(visible_capabilities(ctx)) if any(old != new for _, old, new in used) else ()
    aliases = catalogue.universe.aliases
    tools = [
        ("tool", text, aliases[text])
        for text in (*spec.additional_tools, *spec.disallowed_tools)
        if text in aliases and (everything or aliases[text] in ctx.grant.events)
    ]
    return [
        {kind: old, "code": "old_name", "message": f"{old!r} is an old name of {new!r}"}
        for kind, old, new in (*used, *tools)
        if old != new and (kind == "tool" or everything or new in seen)
    ]


def _dropped(ctx: Context, spec: AgentSpec, own: Grant) -> list[dict[str, str]]:
    """Tools that were added by name and are held back, by `max_effect` or by a review."""
    universe = ctx.catalogue.universe
    found = []
    for text in spec.additional_tools:
        entry = ToolEntry.parse(text, REQUEST)
        if entry.pattern is None:
            is_held = entry.model_tool in own.claude_tools | own.denied_tools
            is_capped = own.max_effect is not None
        else:
            name = universe.canonical(entry.pattern.prefix)
            covered = own.events.union(own.denied_events)
            is_seen = name in universe.index and (ctx.sees_everything or name in ctx.grant.events)
            is_held = not entry.pattern.exact or not is_seen or name in covered
            is_capped = is_seen and name not in own.events and _is_above(ctx.catalogue, own, name)
        if is_capped and not ctx.sees_everything:  # who does is told as a file would be
            message = f"{text!r} is not given: its profile lets through {own.max_effect!r} at most"
            found.append({"code": "above_max_effect", "message": message, "tool": text})
        elif not (is_held or is_capped):
            message = f"{text!r} is not given: what holds it waits for a security review"
            found.append({"code": "review_pending", "message": message, "tool": text})
    return found


def _is_above(catalogue: Catalogue, own: Grant, event: str) -> bool:
    universe = catalogue.universe
    kept = universe.everything if own.max_effect is None else universe.at_most[own.max_effect]
    return not kept & universe.bits_of([event])


STATUS_CODES = ("retired", "coming_soon", "deprecated")


def status_warnings(catalogue: Catalogue, capabilities: Mapping[str, bool]) -> list[dict[str, str]]:
    """What is switched on and works differently from what somebody may think, in order."""
    found = []
    for name, on in capabilities.items():
        definition = catalogue.capabilities.get(catalogue.names.get(name, ""))
        if not on or definition is None or definition.status == "available":
            continue
        said = "it grants nothing" if not definition.is_grantable else "choose another one"
        message = f"{name!r} is {definition.status}: {said}"
        found.append({"capability": name, "code": definition.status, "message": message})
    return found
