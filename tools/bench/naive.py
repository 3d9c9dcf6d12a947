"""The resolver that one writes first: recursive, by scanning, once for each profile.

It follows the sketch that this project started from, completed where the sketch stops (extends,
denials, events that must be named), and serves as the yardstick for compiling. Its answers must be
the same as ours.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase

from remit.model.capability import Capability
from remit.model.composition import Composition
from remit.model.event import EventSpec
from remit.policy.catalogue import Definitions

Matches = Callable[[str, str], bool]


def by_prefix(name: str, pattern: str) -> bool:
    """A match that knows that `*` stands at the end only: what a second look would write."""
    return name.startswith(pattern[:-1]) if pattern[-1] == "*" else name == pattern


class NaiveResolver:
    """Resolves one profile at a time and remembers nothing."""

    def __init__(
        self, definitions: Definitions, events: list[EventSpec], matches: Matches = fnmatchcase
    ) -> None:
        self.capabilities = {capability.id: capability for capability in definitions.capabilities}
        self.compositions = {c.name: c for c in definitions.compositions}
        self.events = events
        self.matches = matches

    def resolve_all(self) -> dict[str, tuple[set[str], set[str]]]:
        """Events and model tools of every profile."""
        return {name: self.resolve(composition) for name, composition in self.compositions.items()}

    def resolve(self, profile: Composition) -> tuple[set[str], set[str]]:
        """Events and model tools of one profile."""
        allowed: set[str] = set()
        tools: set[str] = set()
        flags, additional, disallowed = self._merged(profile)
        base = [c.id for c in self.capabilities.values() if c.always_included]
        for name in [*base, *(name for name, on in flags.items() if on)]:
            events, more_tools = self._expand(self.capabilities[name])
            allowed.update(events)
            tools.update(more_tools)
        for pattern in additional:
            allowed.update(self._granted(pattern))
        for pattern in disallowed:
            allowed -= {spec.name for spec in self.events if self.matches(spec.name, pattern)}
        return allowed, tools

    def _merged(self, profile: Composition) -> tuple[dict[str, bool], list[str], list[str]]:
        flags: dict[str, bool] = {}
        additional: list[str] = []
        disallowed: list[str] = []
        for parent in profile.extends:
            inherited = self._merged(self.compositions[parent.name])
            flags.update(inherited[0])
            additional += inherited[1]
            disallowed += inherited[2]
        for part in profile.parts:
            flags.update({flag.capability: flag.on for flag in part.flags})
            additional += [text.text for text in part.allowed]
            disallowed += [text.text for text in part.disallowed]
        return flags, additional, disallowed

    def _expand(self, capability: Capability) -> tuple[set[str], set[str]]:
        events: set[str] = set()
        for placed in capability.event_patterns or ():
            events.update(self._granted(str(placed.pattern)))
        tools = {ref.name for ref in capability.claude_tools}
        for required in capability.requires:
            more_events, more_tools = self._expand(self.capabilities[required.name])
            events.update(more_events)
            tools.update(more_tools)
        return events, tools

    def _granted(self, pattern: str) -> set[str]:
        star = pattern.endswith("*")
        return {
            spec.name
            for spec in self.events
            if self.matches(spec.name, pattern) and (spec.wildcard or not star)
        }
