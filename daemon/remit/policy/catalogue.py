"""The catalogue: all definitions of one revision, as written, and compiled over its events.

A security review binds an operator's yes to everything that a capability brings with it: all it
requires, with their patterns, events and model tools. What grows in any of these waits for a new
yes; what shrinks, or is merely described otherwise, keeps the old one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Self

import msgspec

from remit.errors import NotFoundError, Place, Problem
from remit.model.capability import Capability, Mount, RuntimeCapability
from remit.model.composition import Composition, Flag, Variable
from remit.model.event import Universe
from remit.model.grant import Grant
from remit.model.limits import NO_LIMITS, Limits
from remit.model.names import did_you_mean

AGENT_PREFIX = "agent:"
"""What the subject of an approval begins with that counts for one agent, and not for a profile."""


class Member(msgspec.Struct, frozen=True):
    """One capability of what was reviewed."""

    id: str
    patterns: tuple[str, ...]
    claude_tools: tuple[str, ...]
    terms: str
    """The hash of what must stay as it was: limits, prompt, skills, files, configuration."""


class Scope(msgspec.Struct, frozen=True):
    """A capability with all it requires, as somebody looked at it."""

    members: tuple[Member, ...]
    events: frozenset[str]

    def covers(self, other: "Scope") -> bool:
        """Tell whether a yes to this is a yes to the other: it brings nothing more."""
        if not other.events <= self.events:
            return False
        known = {member.id: member for member in self.members}
        return all(
            member.id in known and _is_within(member, known[member.id]) for member in other.members
        )

    @property
    def fingerprint(self) -> str:
        """A hash of all of it, to name what was looked at."""
        return _hash(self)


class Approval(msgspec.Struct, frozen=True):
    """An operator's yes to a capability in a profile, or for one agent."""

    subject: str
    """The name of a profile, or `agent:` and the name of an agent."""
    capability: str
    scope: Scope
    key: str = ""
    """The public key of the agent: a later one of the same name was not meant."""


def scope_of(
    members: Iterable[str], capabilities: Mapping[str, Capability], events: Iterable[str]
) -> Scope:
    """What a capability brings, given its closure and the events of that."""
    found = tuple(_member(capabilities[name]) for name in sorted(members))
    return Scope(found, frozenset(events))


class Definitions(msgspec.Struct, frozen=True):
    """Everything that operators wrote, parsed but not yet checked against each other."""

    capabilities: tuple[Capability, ...] = ()
    compositions: tuple[Composition, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What was wrong with the files."""
    runtime_capabilities: tuple[RuntimeCapability, ...] = ()
    """What was made at run time, beside the files."""

    @property
    def is_unread(self) -> bool:
        """Tell whether mistakes kept every capability from being read."""
        return not self.capabilities and any(problem.is_error for problem in self.problems)


class CompiledRuntimeCapability(msgspec.Struct, frozen=True):
    """A compiled runtime capability; `policy/delegate.py` says when it gives anything."""

    capability: Capability
    author: str
    author_key: str
    own: int = 0
    """By its own patterns, as bits."""
    bits: int = 0
    """With all it requires."""
    exposed: int = 0
    claude_tools: frozenset[str] = frozenset()
    limits: Limits = NO_LIMITS
    members: tuple[str, ...] = ()
    """The capabilities of the files that it requires, directly or not; sorted."""
    inert: str = ""
    """Why it gives nothing in this revision."""


class Catalogue(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """All definitions of one revision, compiled and checked against each other."""

    revision: int
    universe: Universe
    capabilities: Mapping[str, Capability]
    names: Mapping[str, str]
    """Every name a capability answers to, old ones included, with its canonical id."""
    own_events: Mapping[str, int]
    """What each capability grants by itself, as bits."""
    closures: Mapping[str, tuple[str, ...]]
    """Each grantable capability with all it requires, as far as that is grantable too; sorted."""
    base: tuple[str, ...]
    scopes: Mapping[str, Scope]
    """What each capability brings that needs a security review; in the order of names."""
    approvals: frozenset[Approval] = frozenset()
    approved: Mapping[tuple[str, str], Approval] = {}
    """The same by subject and capability."""
    reviewed: Mapping[tuple[str, str], frozenset[str]] = {}
    """The capabilities that were approved for single agents, by name and key."""
    compositions: Mapping[str, Composition] = {}
    lineages: Mapping[str, tuple[Composition, ...]] = {}
    """For each profile all it builds on, dependencies first, and then itself."""
    variables: Mapping[str, Mapping[str, Variable]] = {}
    """For each profile the variables it ends up with."""
    grants: dict[str, Grant] = {}
    runtime_capabilities: Mapping[str, CompiledRuntimeCapability] = {}
    """The capabilities that were made at run time; they are in `capabilities` too."""
    warnings: tuple[Problem, ...] = ()

    def composition(self, profile: str) -> Composition:
        """The composition of a profile.

        Raises:
            NotFoundError: there is no such profile.
        """
        if profile not in self.compositions:
            hint = did_you_mean(profile, self.compositions)
            raise NotFoundError(f"there is no profile {profile!r}", hint=hint)
        return self.compositions[profile]

    def grant(self, profile: str) -> Grant:
        """The grant of a profile, without values for its variables.

        Raises:
            NotFoundError: there is no such profile.
        """
        return self.grants[self.composition(profile).name]

    def roots(self, flags: Mapping[str, Flag]) -> tuple[str, ...]:
        """The base and the capabilities that are switched on, by id, as far as grantable."""
        switched_on = (name for name, flag in flags.items() if flag.on)
        roots = {*switched_on, *self.base}
        return tuple(sorted(n for n in roots if self.capabilities[n].is_grantable))

    def needs_review(self, subject: str, capability: str) -> bool:
        """Tell whether a capability is still inert for a profile or an agent."""
        if capability not in self.scopes:
            return False
        found = self.approved.get((subject, capability))
        return found is None or not found.scope.covers(self.scopes[capability])

    def approval(self, subject: str, capability: str, key: str = "") -> Approval:
        """The approval that makes a capability which needs a review work for a subject."""
        return Approval(subject, capability, self.scopes[capability], key)

    def reviewed_for(self, agent: str, key: str) -> frozenset[str]:
        """The capabilities that were approved for one agent, whatever its profile waits for."""
        return self.reviewed.get((agent, key), frozenset())

    def with_approvals(self, approvals: frozenset[Approval]) -> Self:
        """The same definitions under other approvals; grants are not computed anew."""
        approved = {(one.subject, one.capability): one for one in approvals}
        catalogue = msgspec.structs.replace(self, approvals=approvals, approved=approved)
        reviewed: dict[tuple[str, str], frozenset[str]] = {}
        for one in approvals:
            if one.key and not catalogue.needs_review(one.subject, one.capability):
                holder = (one.subject.removeprefix(AGENT_PREFIX), one.key)
                known = reviewed.get(holder, frozenset())
                reviewed[holder] = known | ({one.capability} & catalogue.scopes.keys())
        return msgspec.structs.replace(catalogue, reviewed=reviewed)


def find_scopes(
    capabilities: Mapping[str, Capability],
    closures: Mapping[str, tuple[str, ...]],
    own_events: Mapping[str, int],
    universe: Universe,
) -> Mapping[str, Scope]:
    """What each capability brings that needs a review, given what each gives by itself."""

    def find(name: str) -> Scope:
        members = closures.get(name, ())
        bits = 0
        for member in members:
            bits |= own_events[member]
        return scope_of(members, capabilities, universe.names_in(bits))

    return _Scopes(capabilities, find)


class _Scopes(Mapping[str, Scope]):
    """What each capability brings that waits for a review; computed when it is asked for.

    Most questions ask for none, and a hash costs them what all else of a catalogue does.
    """

    def __init__(
        self, capabilities: Mapping[str, Capability], find: Callable[[str], Scope]
    ) -> None:
        self._found: dict[str, Scope] = {}
        self._find = find
        self._names = {
            name: None
            for name, definition in sorted(capabilities.items())
            if definition.security_review_required
        }

    def __getitem__(self, name: str) -> Scope:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def mounts_of(grant: Grant, capabilities: Mapping[str, Capability]) -> dict[str, Mount]:
    """The files that come with what a grant holds, by path."""
    found: dict[str, Mount] = {}
    for name in grant.capabilities:
        definition = capabilities.get(name)
        if definition is not None and definition.is_grantable:
            for mount in definition.mounts:
                found.setdefault(mount.path, mount)
    return found


def dead_pattern(text: str, place: Place, universe: Universe) -> Problem:
    """The warning about an allow pattern under which there is no event."""
    hint = did_you_mean(text, universe.names) if universe.names else ""
    message = f"no event matches {text!r}"
    named = [n for n in universe.names_in(universe.named_only) if n.startswith(text[:-1])]
    if text.endswith("*") and named:
        message = f"no event that a wildcard may grant matches {text!r}"
        hint = f"name it: {', '.join(named)}"
    return Problem(place, "dead_pattern", message, hint, severity="warning")


def _is_within(member: Member, known: Member) -> bool:
    return (
        member.terms == known.terms
        and set(member.patterns) <= set(known.patterns)
        and set(member.claude_tools) <= set(known.claude_tools)
    )


def _member(capability: Capability) -> Member:
    return Member(
        capability.id,
        tuple(sorted(map(str, capability.event_patterns or ()))),
        tuple(sorted(ref.name for ref in capability.claude_tools)),
        _hash(
            {
                "resource_limits": capability.resource_limits.to_json(),
                "system_prompt": capability.system_prompt,
                "skills": sorted(capability.skills),
                "mounts": [mount.to_json() for mount in capability.mounts],
                "config_schema": capability.config_schema,
            }
        ),
    )


def _hash(content: object) -> str:
    import hashlib  # noqa: PLC0415 - 3 ms, and few capabilities need a review

    # Sets have no order of their own: without sorting, each process would have its own hash.
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
