"""A profile and everything it builds on, merged into one layer, with its variables filled in.

Among equals (several parents, several mixins, several components) order never matters: a capability
switched off by one of them is off, lists are joined, the smallest limit and the lowest `max_effect`
win. Between ranks the later one decides about its flags, its launcher and its exposure: parents,
then mixins, then the profile's own keys. No denial, `max_effect` or demand for approval is undone.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from remit.errors import InvalidDataError, InvalidPatternError, Place, Problem
from remit.model.composition import Composition, Condition, Flag, Part, Scalar, Variable, same_value
from remit.model.launch import BLANK, Launch, LauncherText, PlacedLaunch, Template
from remit.model.limits import EXPOSURES, NO_LIMITS, Limits, PlacedEffect, PlacedExposure, least
from remit.model.names import ToolEntry, did_you_mean

_SAFE_IN_TOOLS = re.compile(r"[a-z0-9][a-z0-9_.-]*")

Environment = Mapping[str, Scalar]


class Layer(msgspec.Struct, frozen=True):
    """A profile with all that it builds on merged in."""

    flags: Mapping[str, Flag] = {}
    """By the id of the capability, whatever name the flag was written by."""
    allowed: tuple[ToolEntry, ...] = ()
    disallowed: tuple[ToolEntry, ...] = ()
    approval: tuple[ToolEntry, ...] = ()
    limits: Limits = NO_LIMITS
    max_effect: PlacedEffect | None = None
    prompt: str = ""
    launcher: PlacedLaunch | None = None
    exposure: PlacedExposure | None = None
    pinned: tuple[ToolEntry, ...] = ()


EMPTY = Layer()


def flatten(
    lineage: Iterable[Composition],
    environment: Environment,
    names: Mapping[str, str],
    problems: list[Problem],
    layers: dict[str, Layer] | None = None,
) -> Layer:
    """Merge a profile with all it builds on.

    Args:
        lineage: everything the profile builds on, each after what it builds on itself; the
            profile comes last.
        environment: the value of every variable.
        names: the id of a capability by each of its names, so that one flag overrules another
            whichever name it is written by.
        problems: errors in variables and patterns are added here.
        layers: what is merged already under the same environment; more is added.
    """
    layers = {} if layers is None else layers
    flat = EMPTY
    for composition in lineage:
        if composition.name not in layers:
            flat = _flatten_one(composition, layers, environment, names, problems)
            layers[composition.name] = flat
        flat = layers[composition.name]
    return flat


def _flatten_one(
    composition: Composition,
    layers: Mapping[str, Layer],
    environment: Environment,
    names: Mapping[str, str],
    problems: list[Problem],
) -> Layer:
    parents = [layers[ref.name] for ref in composition.extends if ref.name in layers]
    mixins = [
        layers[mixin.ref.name]
        for mixin in composition.mixins
        if mixin.ref.name in layers and _holds(mixin.when, environment)
    ]
    own = [
        _layer_of(part, environment, names, problems)
        for part in composition.parts
        if _holds(part.when, environment)
    ]
    return _over(_over(_beside(parents), _beside(mixins)), _beside(own))


def _beside(layers: list[Layer]) -> Layer:
    """Merge equals."""
    if not layers:
        return EMPTY
    if len(layers) == 1:
        return layers[0]
    flags: dict[str, Flag] = {}
    for layer in layers:
        for name, flag in layer.flags.items():
            flags[name] = _cautious(flags[name], flag) if name in flags else flag
    launchers = [layer.launcher for layer in layers if layer.launcher]
    exposures = [layer.exposure for layer in layers if layer.exposure]
    return msgspec.structs.replace(
        _joined(layers),
        flags=flags,
        launcher=min(launchers, key=_by_caution, default=None),
        exposure=min(exposures, key=_by_reserve, default=None),
    )


def _cautious(one: Flag, other: Flag) -> Flag:
    """Off beats on, and a configuration beats none; else the place decides, so order never does."""
    if one.on != other.on:
        return one if not one.on else other
    return min(one, other, key=lambda flag: (flag.config is None, flag.place))


def _by_caution(launcher: PlacedLaunch) -> tuple[bool, Place]:
    """Starting nothing beats starting something; else the place decides, and order never does."""
    return bool(launcher.launch.starts), launcher.place


def _by_reserve(exposure: PlacedExposure) -> tuple[int, Place]:
    """Who shows less comes first; else the place decides, and order never does."""
    return EXPOSURES.index(exposure.mode), exposure.place


def _over(lower: Layer, upper: Layer) -> Layer:
    """Put one rank over another: what only one can decide it decides, all else is joined."""
    if upper is EMPTY or lower is EMPTY:
        return lower if upper is EMPTY else upper
    return msgspec.structs.replace(
        _joined([lower, upper]),
        flags=_configured(lower.flags, upper.flags) if lower.flags else upper.flags,
        launcher=upper.launcher or lower.launcher,
        exposure=upper.exposure or lower.exposure,
    )


def _configured(lower: Mapping[str, Flag], upper: Mapping[str, Flag]) -> Mapping[str, Flag]:
    """Upper flags over lower ones; who says nothing of a configuration keeps the one from below."""
    found = {**lower, **upper}
    for name, flag in upper.items():
        below = lower.get(name)
        if flag.on and flag.config is None and below is not None and below.on:
            found[name] = msgspec.structs.replace(flag, config=below.config, places=below.places)
    return found


def _joined(layers: list[Layer]) -> Layer:
    """What several say together, without what only one can decide."""
    limits = NO_LIMITS
    for layer in layers:
        limits = limits.smallest(layer.limits)
    return Layer(
        allowed=_union(layer.allowed for layer in layers),
        disallowed=_union(layer.disallowed for layer in layers),
        approval=_union(layer.approval for layer in layers),
        limits=limits,
        max_effect=least(layer.max_effect for layer in layers),
        prompt="\n\n".join(layer.prompt for layer in layers if layer.prompt),
        pinned=_union(layer.pinned for layer in layers),
    )


def _union(lists: Iterable[tuple[ToolEntry, ...]]) -> tuple[ToolEntry, ...]:
    return tuple(dict.fromkeys(entry for entries in lists for entry in entries))


def _holds(conditions: Iterable[Condition], environment: Environment) -> bool:
    return all(
        condition.variable in environment
        and same_value(environment[condition.variable], condition.value)
        for condition in conditions
    )


def _layer_of(
    part: Part, environment: Environment, names: Mapping[str, str], problems: list[Problem]
) -> Layer:
    flags: dict[str, Flag] = {}
    for flag in part.flags:
        name = names.get(flag.capability, flag.capability)
        flags[name] = _cautious(flags[name], flag) if name in flags else flag
    return Layer(
        flags=flags,
        allowed=_entries(part.allowed, environment, problems),
        disallowed=_entries(part.disallowed, environment, problems),
        approval=_entries(part.approval, environment, problems),
        limits=part.limits,
        max_effect=part.max_effect,
        prompt=_filled(part.prompt, environment, problems) if part.prompt else "",
        launcher=_launcher(part.launcher, environment, problems) if part.launcher else None,
        exposure=part.exposure,
        pinned=_entries(part.pinned, environment, problems),
    )


def _launcher(
    written: LauncherText, environment: Environment, problems: list[Problem]
) -> PlacedLaunch:
    launch = Launch(
        command=written.command,
        ready=written.ready,
        args=tuple(_filled(text, environment, problems) for text in written.args),
        env={name: _filled(text, environment, problems) for name, text in written.env},
        cwd=_filled(written.cwd, environment, problems) if written.cwd else None,
        restart=written.restart,
        max_restarts=written.max_restarts,
    )
    texts = [*written.args, *(text for _, text in written.env), written.cwd]
    variables = {name for text in texts if text for name in BLANK.findall(text.text)}
    return PlacedLaunch(launch, written.place, frozenset(variables))


def bind(variables: Mapping[str, Variable], given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The value of every variable.

    Raises:
        InvalidDataError: a given name or value does not fit the declarations.
    """
    for name, value in given.items():
        if name not in variables:
            raise InvalidDataError(
                f"this profile has no variable {name!r}",
                hint=did_you_mean(name, variables),
                details={"path": f"variables.{name}"},
            )
        complaint = variables[name].complaint(value)
        if complaint:
            raise InvalidDataError(complaint, details={"path": f"variables.{name}"})
    return {name: given.get(name, variable.default) for name, variable in variables.items()}


def _entries(
    texts: Iterable[Template], environment: Environment, problems: list[Problem]
) -> tuple[ToolEntry, ...]:
    """The entries of a tool list; what is wrong with them is added to `problems`."""
    found = []
    for text in texts:
        written = _filled(text, environment, problems, in_tools=True)
        try:
            found.append(ToolEntry.parse(written, text.place))
        except InvalidPatternError as error:
            problems.append(Problem(text.place, error.code, error.message, error.hint))
    return tuple(found)


def _filled(
    text: Template, environment: Environment, problems: list[Problem], *, in_tools: bool = False
) -> str:
    """Put the values of variables into a string.

    INVARIANT: a value never brings a `*` or a colon into a tool list, so it cannot widen a grant
    beyond the pattern that the operator wrote around it.
    """
    if "{{" not in text.text:
        return text.text

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in environment:
            message = f"there is no variable {name!r}"
            hint = did_you_mean(name, environment) or "declare it under 'variables:'"
            problems.append(Problem(text.place, "unknown_variable", message, hint))
            return "unknown"
        value = _text_of(environment[name])
        if in_tools and not _SAFE_IN_TOOLS.fullmatch(value):
            message = f"the value {value!r} of {name!r} cannot stand in a tool list"
            hint = "there, a variable holds lowercase letters, digits and _ . - only"
            problems.append(Problem(text.place, "unsafe_value", message, hint))
            return "unsafe"
        return value

    return BLANK.sub(value_of, text.text)


def _text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
