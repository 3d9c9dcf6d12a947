"""Security reviews: what exactly an operator said yes to.

An approval is bound to everything that the capability brings with it: all it requires, with their
patterns, events and model tools. What grows in any of these waits for a new yes; what shrinks, or
is merely described otherwise, keeps the old one.
"""

from collections.abc import Iterable, Mapping

import msgspec

from remit.model.capability import Capability

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
