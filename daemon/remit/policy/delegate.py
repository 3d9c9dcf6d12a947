"""What an agent may be given: a profile with its own changes, and never more than its parent.

INVARIANT: nobody gets through a capability that was made at run time what its author does not hold
at that moment. What it could give is a share beside the grant, and is added only under the present
rights of the author.
"""

from collections.abc import Callable, Iterable

import msgspec

from remit.errors import REQUEST, InvalidDataError, Problem
from remit.model.composition import Composition, Flag, Part, Scalar
from remit.model.grant import Grant, Share
from remit.model.launch import Template
from remit.model.limits import NO_LIMITS, Limits
from remit.model.names import Ref, ToolEntry
from remit.model.principal import AgentSpec
from remit.policy.catalogue import Catalogue
from remit.policy.checks import MissingConfig, check_entries, grant_warnings, missing_configs
from remit.policy.decide import confine
from remit.policy.layers import Layer, bind, flatten
from remit.policy.resolve import make_grant

_CHANGES = "\0changes"
"""The name of an agent's own changes: no profile can have it."""


class Excess(msgspec.Struct, frozen=True):
    """The events and tools that somebody would hold beyond the one who gives them."""

    events: tuple[str, ...]
    claude_tools: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Tell whether everything fits."""
        return not self.events and not self.claude_tools


NO_EXCESS = Excess((), ())


def excess(grant: Grant, ceiling: Grant) -> Excess:
    """What a grant has beyond a ceiling, sorted."""
    return Excess(
        tuple(sorted(grant.events - ceiling.events)),
        tuple(sorted(grant.claude_tools - ceiling.claude_tools)),
    )


def resolve_agent(
    catalogue: Catalogue,
    spec: AgentSpec,
    *,
    lives: bool = False,
    reviewed: frozenset[str] = frozenset(),
) -> Grant:
    """The grant of an agent by itself, before any ceiling.

    Without a profile it holds what is always included, and what its own changes add. `reviewed` are
    the capabilities that were approved for this agent, beside those of its profile.

    Raises:
        NotFoundError: the profile is not there.
        InvalidDataError: a capability, tool or variable cannot be used.
    """
    if spec.profile and not spec.is_changed:
        return catalogue.grant(spec.profile)
    if spec.profile:
        catalogue.composition(spec.profile)
    layer, environment = agent_layer(catalogue, spec, lives=lives)
    return make_grant(catalogue, _named(catalogue, spec), layer, environment, reviewed)


def request_warnings(
    catalogue: Catalogue, spec: AgentSpec, reviewed: frozenset[str] = frozenset()
) -> tuple[list[Problem], Grant]:
    """What is odd about the changes of an agent, as a file would be told; and its own grant."""
    layer, environment = agent_layer(catalogue, spec, lives=True)
    named = _named(catalogue, spec)
    grant = make_grant(catalogue, named, layer, environment, reviewed)
    found = grant_warnings(catalogue, named, layer, grant)
    return [problem for problem in found if problem.place == REQUEST], grant


def remainder(catalogue: Catalogue, spec: AgentSpec) -> Grant:
    """What is left to an agent whose profile is gone, or does not fit its changes any more.

    That is what everybody has, under its own denials and limits: enough to find out what happened.
    """
    kept = remaining(spec)
    layer, environment = agent_layer(catalogue, kept, lives=True)
    grant = make_grant(catalogue, _named(catalogue, kept), layer, environment)
    return msgspec.structs.replace(grant, profile=spec.profile)


def remaining(spec: AgentSpec) -> AgentSpec:
    """What counts of an agent whose profile does not: its denials and its limits."""
    return AgentSpec(disallowed_tools=spec.disallowed_tools, limits=spec.limits)


def agent_layer(
    catalogue: Catalogue, spec: AgentSpec, *, lives: bool = False
) -> tuple[Layer, dict[str, Scalar]]:
    """An agent's profile merged with its own changes, and the values of its variables.

    A denial that matches nothing is taken for a typo, unless the agent lives already: then the
    event was there, has been taken away, and is denied again when it comes back.

    Raises:
        InvalidDataError: a capability, tool or variable cannot be used.
    """
    for name in spec.capabilities:
        if name not in catalogue.names:
            path = f"$.capabilities.{name}"
            raise InvalidDataError(f"there is no capability {name!r}", details={"path": path})
    problems: list[Problem] = []
    environment = bind(catalogue.variables.get(spec.profile, {}), spec.variables)
    lineage = (*catalogue.lineages.get(spec.profile, ()), _changes(spec))
    layer = flatten(lineage, environment, catalogue.names, problems)
    problems += check_entries(catalogue, _named(catalogue, spec), layer)
    errors = [problem for problem in problems if problem.is_error]
    if lives:
        errors = [one for one in errors if one.code != "dead_denial" or one.place != REQUEST]
    if errors:
        field = "disallowed_tools" if errors[0].code == "dead_denial" else "additional_tools"
        hint = errors[0].hint if errors[0].place == REQUEST else ""
        raise InvalidDataError(errors[0].message, hint=hint, details={"path": f"$.{field}"})
    return layer, environment


def unconfigured(catalogue: Catalogue, spec: AgentSpec) -> list[MissingConfig]:
    """What the capabilities of an agent need and it is not given, neither by its profile.

    Raises:
        InvalidDataError: a capability, tool or variable cannot be used.
    """
    layer, _ = agent_layer(catalogue, spec)
    return missing_configs(catalogue, layer)


def inherit(catalogue: Catalogue, spec: AgentSpec, above: Grant, *, lives: bool = False) -> Grant:
    """What an agent holds that was given all its parent has, but for what its own changes take.

    Raises:
        InvalidDataError: a denied tool cannot be used.
    """
    if not spec.is_changed:
        return above
    changes = msgspec.structs.replace(spec, profile="", capabilities={})
    own = resolve_agent(catalogue, changes, lives=lives)
    no_tools = any(pattern.is_everything for pattern in own.denied)
    kept = confine(catalogue, above, _without(catalogue, above, frozenset(own.denied_events)))
    return msgspec.structs.replace(
        kept,
        claude_tools=frozenset() if no_tools else above.claude_tools - own.denied_tools,
        denied=(*above.denied, *own.denied),
        denied_events=tuple(sorted({*above.denied_events, *own.denied_events})),
        denied_tools=above.denied_tools | own.denied_tools,
        limits=above.limits.smallest(spec.limits),
    )


def _without(catalogue: Catalogue, grant: Grant, events: frozenset[str]) -> Grant:
    kept = grant.events - events
    return msgspec.structs.replace(grant, events=kept, bits=catalogue.universe.bits_of(kept))


def unheld(catalogue: Catalogue, spec: AgentSpec, ceiling: Grant) -> Excess:
    """What the changes name outright and the giver does not hold, whether or not it exists.

    Without this, a spawn that is accepted would tell that an event does not exist.
    """
    entries = [ToolEntry.parse(text, REQUEST) for text in spec.additional_tools]
    patterns = [entry.pattern for entry in entries if entry.pattern and entry.pattern.exact]
    named = {catalogue.universe.canonical(pattern.prefix): pattern.prefix for pattern in patterns}
    return Excess(tuple(sorted(named[n] for n in named if n not in ceiling.events)), ())


def check_denials(spec: AgentSpec, ceiling: Grant) -> None:
    """Refuse denials that take nothing from what the giver holds, whether or not it exists.

    Raises:
        InvalidDataError: an entry is no tool, or denies nothing.
    """
    for text in spec.disallowed_tools:
        pattern = ToolEntry.parse(text, REQUEST).pattern
        if pattern is not None and not any(map(pattern.covers, ceiling.events)):
            raise InvalidDataError(
                f"nothing that you hold matches {text!r}, so this denies nothing",
                details={"path": "$.disallowed_tools"},
            )


def _named(catalogue: Catalogue, spec: AgentSpec) -> Composition:
    return catalogue.compositions.get(spec.profile) or Composition(name="", place=REQUEST)


def _changes(spec: AgentSpec) -> Composition:
    return Composition(
        name=_CHANGES,
        place=REQUEST,
        extends=(Ref(spec.profile, REQUEST),) if spec.profile else (),
        parts=(
            Part(
                flags=tuple(
                    Flag(name, on, REQUEST, spec.configs.get(name))
                    for name, on in spec.capabilities.items()
                ),
                allowed=_texts(spec.additional_tools),
                disallowed=_texts(spec.disallowed_tools),
                limits=spec.limits,
            ),
        ),
    )


def _texts(entries: Iterable[str]) -> tuple[Template, ...]:
    return tuple(Template(entry, REQUEST) for entry in entries)


Ceiling = Callable[[str, str], Grant | None]
"""What an author, by name and key, holds without anything made at run time; None: everything."""


def with_shares(catalogue: Catalogue, grant: Grant, ceiling_of: Ceiling) -> Grant:
    """A grant with what the authors of its shares hold of them now."""
    found = msgspec.structs.replace(grant, shares=())
    for share in grant.shares:
        found = _added(catalogue, found, share, ceiling_of(share.author, share.author_key))
    return found


def present_share(share: Share, ceiling: Grant | None) -> tuple[int, frozenset[str]]:
    """The events and model tools of a share that its author holds now."""
    if ceiling is None:
        return share.bits, share.claude_tools
    return share.bits & ceiling.bits, share.claude_tools & ceiling.claude_tools


def _added(catalogue: Catalogue, grant: Grant, share: Share, ceiling: Grant | None) -> Grant:
    if catalogue.runtime_capabilities[share.capability].inert or (
        ceiling is not None and not ceiling.bits
    ):
        held = tuple(name for name in grant.capabilities if name != share.capability)
        return msgspec.structs.replace(grant, capabilities=held)  # its words and files go as well
    bits, tools = present_share(share, ceiling)
    universe = catalogue.universe
    fresh = bits & ~grant.bits
    waiting = frozenset(universe.names_in(fresh & share.waiting))
    limits = NO_LIMITS
    if ceiling is not None:
        # What the author may do only with an approval, or in a part of the state, nobody does
        # through it without.
        waiting |= ceiling.approval_required.intersection(universe.names_in(fresh))
        limits = Limits(state_prefixes=ceiling.limits.state_prefixes) if fresh else limits
    return msgspec.structs.replace(
        grant,
        bits=grant.bits | bits,
        events=grant.events.union(universe.names_in(fresh)),
        exposed=grant.exposed.union(universe.names_in(bits & share.exposed)),
        pinned=grant.pinned.union(universe.names_in(bits & share.pinned)),
        claude_tools=grant.claude_tools | tools,
        approval_required=grant.approval_required | waiting,
        limits=grant.limits.smallest(limits),
    )
