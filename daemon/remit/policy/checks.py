"""A profile merged and checked: what is wrong with it, and what is merely worth saying.

The configuration of a capability stands in a file or in a request; whether its schema is content is
checked here and nowhere later. A capability without a schema takes no configuration.
"""

from collections.abc import Iterator, Mapping

import msgspec

from remit.errors import REQUEST, DefinitionError, Place, Problem, Severity, by_place
from remit.model.composition import Composition, Flag, Scalar
from remit.model.event import SEARCH
from remit.model.grant import Grant
from remit.model.names import KNOWN_MODEL_TOOLS, ToolEntry, did_you_mean
from remit.model.schema import config_mistakes, shown
from remit.model.upstream import NAMESPACE
from remit.policy.catalogue import Catalogue, dead_pattern
from remit.policy.layers import Layer, bind, flatten

Merged = dict[str, dict[str, Layer]]
"""Layers by the values of the variables under which they were merged: long chains merge once."""


def layer_of(
    catalogue: Catalogue, profile: str, given: Mapping[str, Scalar], merged: Merged | None = None
) -> tuple[Layer, dict[str, Scalar]]:
    """A profile merged with all it builds on, and the values of its variables.

    Raises:
        NotFoundError: there is no such profile.
        InvalidDataError: a variable does not fit its declaration.
        DefinitionError: a value makes an entry of a tool list unreadable.
    """
    composition = catalogue.composition(profile)
    environment = bind(catalogue.variables[profile], given)
    problems: list[Problem] = []
    layers = {} if merged is None else merged.setdefault(repr(sorted(environment.items())), {})
    layer = flatten(catalogue.lineages[profile], environment, catalogue.names, problems, layers)
    problems += check_entries(catalogue, composition, layer)
    problems += (missing.problem for missing in missing_configs(catalogue, layer))
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        raise DefinitionError(sorted(errors, key=by_place))
    return layer, environment


def check_entries(catalogue: Catalogue, composition: Composition, layer: Layer) -> list[Problem]:
    """Errors in tool lists: a bare `*` that grants, a denial that denies nothing."""
    problems = []
    for entry in layer.allowed:
        if entry.pattern and entry.pattern.is_everything and not composition.operator:
            message = f"the profile {composition.name!r} may not allow every event"
            hint = "name what it needs, or mark it 'operator: true'"
            problems.append(Problem(entry.place, "bare_wildcard", message, hint))
    for entry in layer.disallowed:
        if entry.pattern and not _is_matched(catalogue, entry):
            message = f"no event matches {entry.text!r}, so this denies nothing"
            hint = did_you_mean(entry.text, _known_events(catalogue))
            problems.append(Problem(entry.place, "dead_denial", message, hint))
    return [*problems, *_approval_problems(catalogue, layer)]


def _approval_problems(catalogue: Catalogue, layer: Layer) -> list[Problem]:
    """A demand for approval that protects nothing is as dangerous as a denial that does not."""
    problems = []
    for entry in layer.approval:
        if entry.pattern is None:
            message = f"{entry.text!r} is no event, and only calls of events wait for approval"
            hint = "write an event or a pattern, as in 'state:delete'"
            problems.append(Problem(entry.place, "dead_approval", message, hint))
        elif not _is_matched(catalogue, entry):
            message = f"no event matches {entry.text!r}, so nothing waits for approval"
            hint = did_you_mean(entry.text, _known_events(catalogue))
            problems.append(Problem(entry.place, "dead_approval", message, hint))
    return problems


def _upstream_rules(catalogue: Catalogue, layer: Layer) -> list[Problem]:
    """Rules about upstream tools that are not here now.

    INVARIANT: none of them stops definitions from coming in force: upstream tools come and go, and
    a rule about one must not keep it alive.
    """
    return [
        _warning(entry.place, code, f"no upstream tool matches {entry.text!r} now")
        for code, entries in (("dead_denial", layer.disallowed), ("dead_approval", layer.approval))
        for entry in entries
        if _is_upstream(entry) and not _denies_something(catalogue, entry)
    ]


def _is_matched(catalogue: Catalogue, entry: ToolEntry) -> bool:
    return _is_upstream(entry) or _denies_something(catalogue, entry)


def _is_upstream(entry: ToolEntry) -> bool:
    return entry.text.startswith(f"{NAMESPACE}:")


def _denies_something(catalogue: Catalogue, entry: ToolEntry) -> bool:
    pattern = entry.pattern
    if pattern is None or pattern.is_everything or catalogue.universe.denied_by(pattern):
        return True
    # A name that a capability holds is no typo, even while its handler is not loaded.
    return any(pattern.covers(name) for name in _named_events(catalogue))


def _named_events(catalogue: Catalogue) -> set[str]:
    return {
        placed.pattern.prefix
        for definition in catalogue.capabilities.values()
        for placed in definition.event_patterns or ()
        if placed.pattern.exact and definition.id not in catalogue.runtime_capabilities
    }


def _known_events(catalogue: Catalogue) -> set[str]:
    return _named_events(catalogue).union(catalogue.universe.names)


def grant_warnings(
    catalogue: Catalogue, composition: Composition, layer: Layer, grant: Grant
) -> list[Problem]:
    """Everything in a profile that works differently from what its author may think."""
    return [
        *_entry_warnings(catalogue, layer),
        *_upstream_rules(catalogue, layer),
        *_flag_warnings(catalogue, layer, grant),
        *_review_warnings(composition, grant),
        *_broken_requirements(catalogue, composition, layer, grant),
        *_exposure_warnings(catalogue, layer, grant),
        *_ceiling_warnings(catalogue, layer),
    ]


def _warning(place: Place, code: str, message: str, hint: str = "") -> Problem:
    return Problem(place, code, message, hint, severity="warning")


def _entry_warnings(catalogue: Catalogue, layer: Layer) -> list[Problem]:
    universe = catalogue.universe
    own_tools = {
        ref.name
        for definition in catalogue.capabilities.values()
        for ref in definition.claude_tools
    }
    problems = [
        dead_pattern(entry.text, entry.place, universe)
        for entry in layer.allowed
        if entry.pattern and not universe.granted_by(entry.pattern)
    ]
    for entry in (*layer.allowed, *layer.disallowed):
        if entry.model_tool and entry.model_tool not in KNOWN_MODEL_TOOLS | own_tools:
            known = KNOWN_MODEL_TOOLS | own_tools
            hint = did_you_mean(entry.text, known) or "an event has a colon, as in 'state:get'"
            message = f"{entry.text!r} is no model tool that we know"
            problems.append(_warning(entry.place, "unknown_model_tool", message, hint))
        elif entry.text in universe.aliases:
            name = universe.aliases[entry.text]
            message = f"{entry.text!r} is an old name of {name!r}"
            problems.append(_warning(entry.place, "old_name", message, f"write {name!r}"))
    return problems


def _flag_warnings(catalogue: Catalogue, layer: Layer, grant: Grant) -> list[Problem]:
    problems = []
    for flag in layer.flags.values():
        definition = catalogue.capabilities[catalogue.names[flag.capability]]
        if not flag.on and definition.id in grant.capabilities:
            how = "is always included" if definition.always_included else "is required by another"
            message = f"{flag.capability!r} is switched off here, but it {how}"
            hint = "deny its events with 'disallowed_tools', or drop what requires it"
            problems.append(_warning(flag.place, "flag_without_effect", message, hint))
        if flag.on and not definition.is_grantable:
            message = f"{flag.capability!r} is {definition.status}: it grants nothing"
            problems.append(_warning(flag.place, definition.status, message, "remove it"))
        if flag.on and definition.status == "deprecated":
            hint = _successor(catalogue, definition.id)
            message = f"{flag.capability!r} is deprecated"
            problems.append(_warning(flag.place, "deprecated", message, hint))
    return problems


def _successor(catalogue: Catalogue, name: str) -> str:
    for definition in catalogue.capabilities.values():
        if any(ref.name == name for ref in definition.replaces):
            return f"use {definition.id!r}"
    return ""


def _review_warnings(composition: Composition, grant: Grant) -> list[Problem]:
    return [
        _warning(
            composition.place,
            "review_pending",
            f"{name!r} waits for a security review in the profile {grant.profile!r}",
            f"an operator approves it with: remit review approve {grant.profile} {name}",
        )
        for name in grant.pending_review
    ]


def _broken_requirements(
    catalogue: Catalogue, composition: Composition, layer: Layer, grant: Grant
) -> list[Problem]:
    """A capability that still gives something while what it requires was taken away."""
    problems = []
    taken = _taken(catalogue, layer, grant)
    held = frozenset(grant.capabilities)
    for name in grant.capabilities:
        for ref in catalogue.capabilities[name].requires:
            required = catalogue.names[ref.name]
            if required in held and required not in taken:
                continue
            if not catalogue.own_events[name] & grant.bits:
                break
            if required not in held:
                status = catalogue.capabilities[required].status
                why = status if status != "available" else "waiting for review"
                message = f"{name} is granted but {required}, which it requires, is {why}"
                problems.append(_warning(composition.place, "broken_requirement", message))
            for event, place in taken.get(required, ()):
                message = f"{name} is granted but {event}, which it requires, is denied"
                hint = f"allow {event}, or switch {name} off"
                problems.append(_warning(place, "broken_requirement", message, hint))
    return problems


def _taken(catalogue: Catalogue, layer: Layer, grant: Grant) -> dict[str, list[tuple[str, Place]]]:
    """What the denials of a profile take from each capability that it holds."""
    denied = catalogue.universe.bits_of(grant.denied_events)
    own = catalogue.own_events
    touched = {name: own[name] & denied for name in grant.capabilities if own[name] & denied}
    taken: dict[str, list[tuple[str, Place]]] = {name: [] for name in touched}
    for entry in layer.disallowed if touched else ():
        bits = catalogue.universe.denied_by(entry.pattern) if entry.pattern else 0
        for name, left in touched.items():
            if left & bits:
                events = catalogue.universe.names_in(left & bits)
                taken[name] += [(event, entry.place) for event in events]
                touched[name] = left & ~bits
    # What `max_effect` takes is nobody's mistake: it is there to take a part of what comes.
    return {name: found for name, found in taken.items() if found}


def _exposure_warnings(catalogue: Catalogue, layer: Layer, grant: Grant) -> list[Problem]:
    """Tools that nobody could find, and pins that list nothing."""
    tools = catalogue.universe.bits_of(grant.exposed)
    for share in grant.shares:
        tools |= share.exposed  # theirs as soon as its author holds it
    pins = (_pin_warning(catalogue, entry, tools, grant.profile) for entry in layer.pinned)
    return [*_search_warnings(layer, grant), *(warning for warning in pins if warning)]


def _search_warnings(layer: Layer, grant: Grant) -> list[Problem]:
    said = layer.exposure
    if said is None or said.mode == "all" or SEARCH in grant.events:
        return []
    message = (
        f"{said.mode!r} has no effect: {grant.profile!r} may not search, so all tools are listed"
    )
    hint = f"allow {SEARCH}, or write 'exposure: all'"
    return [_warning(said.place, "nothing_to_find", message, hint)]


def _pin_warning(
    catalogue: Catalogue, entry: ToolEntry, tools: int, profile: str
) -> Problem | None:
    universe = catalogue.universe
    if entry.pattern is None:
        message = f"{entry.text!r} is no event, and only events can be pinned"
        return _warning(entry.place, "dead_pin", message, "an event has a colon, as in 'state:get'")
    covered = universe.denied_by(entry.pattern)
    if not covered:
        hint = did_you_mean(entry.text, universe.names)
        return _warning(entry.place, "dead_pattern", f"no event matches {entry.text!r}", hint)
    if covered & tools:
        return None
    message = f"{entry.text!r} is none of the tools of the profile {profile!r}"
    hint = "give it a capability that shows it in tool lists, or take the pin away"
    return _warning(entry.place, "dead_pin", message, hint)


def _ceiling_warnings(catalogue: Catalogue, layer: Layer) -> list[Problem]:
    """Entries of tool lists of which the ceiling leaves nothing."""
    ceiling = layer.max_effect
    if ceiling is None:
        return []
    universe, problems = catalogue.universe, []
    for entry in layer.allowed:
        bits = universe.granted_by(entry.pattern) if entry.pattern else 0
        if entry.model_tool or (bits and not bits & universe.at_most[ceiling.effect]):
            message = f"{entry.text!r} is not given: {ceiling} lets nothing of it through"
            hint = f"take it out, or raise what {ceiling.place} says"
            problems.append(
                Problem(entry.place, "above_max_effect", message, hint, severity="warning")
            )
    return problems


class MissingConfig(msgspec.Struct, frozen=True):
    """A capability that is held without the configuration that its schema needs."""

    flag: Flag
    """What brings it."""
    capability: str
    needed: str
    brought: bool = False
    """Whether the flag names something else, which requires it."""

    @property
    def problem(self) -> Problem:
        """The same as an error of the files, or of a request."""
        name = self.capability
        brings = f", which {self.flag.capability!r} requires," if self.brought else ""
        message = f"{name!r}{brings} needs a configuration: {self.needed}"
        hint = f"write {{ref: {name}, config: {{…}}}}; its schema: remit gives {name} --json"
        return Problem(self.flag.place, "missing_config", message, hint)


def missing_configs(catalogue: Catalogue, layer: Layer) -> list[MissingConfig]:
    """What a profile switches on, or brings along, without what its schema needs."""
    found = []
    for name, flag in layer.flags.items():
        if not flag.on or (name in catalogue.runtime_capabilities and flag.place != REQUEST):
            continue  # an edit of the files must not fail because of what somebody made
        for member in catalogue.closures.get(name, ()):
            said = layer.flags.get(member)
            is_said = said is not None and said.on
            if member != name and is_said:
                continue  # it speaks for itself
            config = said.config if said is not None and is_said else None
            schema = catalogue.capabilities[member].config_schema
            mistakes = () if config or schema is None else config_mistakes(schema, {})
            if mistakes:
                found.append(MissingConfig(flag, member, mistakes[0].message, member != name))
    return found


def written_problems(catalogue: Catalogue, flag: Flag) -> Iterator[Problem]:
    """What is wrong with a configuration as it was written, each at its own place."""
    definition = catalogue.capabilities.get(catalogue.names.get(flag.capability, ""))
    if definition is None or not flag.config:
        return
    hint = f"its schema is shown by: remit gives {flag.capability} --json"
    # An edit of the files must not fail because of what somebody made at run time.
    severity: Severity = "warning" if definition.id in catalogue.runtime_capabilities else "error"
    if definition.config_schema is None:
        message = f"{flag.capability!r} has no config_schema, so it takes no configuration"
        hint = "leave it out, or give the capability a config_schema"
        place = flag.places.get((), flag.place)
        yield Problem(place, "invalid_config", message, hint, severity)
        return
    for mistake in config_mistakes(definition.config_schema, flag.config):
        path = mistake.path
        while path and path not in flag.places:
            path = path[:-1]
        message = f"the configuration of {flag.capability!r} does not fit: {mistake.message}"
        place = flag.places.get(path, flag.place)
        message = f"{message} ({shown(mistake.path)})"
        yield Problem(place, "invalid_config", message, hint, severity)
