"""Turn an explicit tool list into capabilities and a few overrides that grant exactly the same.

What holds only under a condition, or through a variable, stays as it is and is never relied upon;
profiles that build on the migrated one must not notice either. The answer is proven by compiling
it, against the events that exist and against all that anybody has written down.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from remit.config.migrate.proof import (
    Kin,
    Need,
    Piece,
    Star,
    cheapest,
    compile_beside,
    kin_of,
    prove_same,
)
from remit.model.composition import Composition, Flag, Part
from remit.model.event import EventSpec, Universe, make_universe
from remit.model.grant import Grant
from remit.model.launch import Template
from remit.model.names import EventName, EventPattern, ToolEntry
from remit.policy.catalogue import Catalogue

FUTURE = "remit_future"


class Bits(msgspec.Struct, frozen=True):
    """Events and model tools of a catalogue as one set of bits."""

    catalogue: Catalogue
    tools: tuple[str, ...]

    def of(self, events: int, tools: Iterable[str]) -> int:
        """The bits of these events and tools."""
        base = len(self.catalogue.universe.names)
        for tool in tools:
            events |= 1 << (base + self.tools.index(tool))
        return events

    def of_capability(self, name: str) -> int:
        """All that a capability gives by itself."""
        refs = self.catalogue.capabilities[name].claude_tools
        return self.of(self.catalogue.own_events[name], [ref.name for ref in refs])

    def of_entry(self, entry: ToolEntry) -> int:
        """All that an entry of an allow list grants."""
        events = self.catalogue.universe.granted_by(entry.pattern) if entry.pattern else 0
        return self.of(events, [entry.model_tool] if entry.model_tool else [])

    def names(self, bits: int) -> list[str]:
        """The names of these events and tools, sorted."""
        base = len(self.catalogue.universe.names)
        tools = [tool for at, tool in enumerate(self.tools) if bits >> (base + at) & 1]
        return sorted([*self.catalogue.universe.names_in(bits & ((1 << base) - 1)), *tools])


class CoverTask(msgspec.Struct, frozen=True):
    """The task of finding a replacement, and the means to read its solution."""

    bits: Bits
    need: Need
    stars: tuple[str, ...]
    """The texts of the wildcard entries, in the order of the need's stars."""
    kept: tuple[str, ...]
    """Entries that wait for a review and therefore must stay."""


class ProfileMigration(msgspec.Struct, frozen=True, kw_only=True):
    """A profile said with capabilities. Every list is sorted."""

    profile: str
    capabilities: tuple[str, ...]
    """All that the profile itself switches on, old and new."""
    additional_tools: tuple[str, ...]
    disallowed_tools: tuple[str, ...]
    chosen: tuple[str, ...]
    """The capabilities that are new."""
    denied: tuple[str, ...]
    """The denials that are new."""
    limits_changed: dict[str, list[Any]]
    composition: Composition
    """The migrated profile itself."""
    homes: dict[str, str]
    """For each entry that became a capability, that capability."""

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read."""
        return {
            "capabilities": list(self.capabilities),
            "additional_tools": list(self.additional_tools),
            "disallowed_tools": list(self.disallowed_tools),
            "same": True,  # a migration that is not the same is never made
            "limits_changed": self.limits_changed,
        }


def migrate(catalogue: Catalogue, composition: Composition) -> ProfileMigration:
    """Find the smallest set of capabilities and overrides that says the same as explicit lists.

    Raises:
        ConflictError: nothing was found that grants exactly the same.
        DefinitionError: the composition does not load against this catalogue.
    """
    kin = kin_of(catalogue, composition)
    explicit = [text for text in _own_entries(composition) if _is_movable(text, composition)]
    written = _with_written_events(catalogue, kin)
    task = _task_of(catalogue, kin, written, explicit)
    chosen = cheapest(task.need)
    additional = _additional(task, chosen, explicit)
    denied = _denials(task, chosen)
    migrated = _migrated(composition, chosen, additional, denied)
    changed = prove_same(catalogue, kin, written, migrated)
    return ProfileMigration(
        profile=composition.name,
        capabilities=tuple(sorted({*chosen, *_switched_on(composition)})),
        additional_tools=tuple(sorted({text.text for text in _own_entries(migrated)})),
        disallowed_tools=tuple(
            sorted({t.text for p in _steady_parts(migrated) for t in p.disallowed})
        ),
        chosen=chosen,
        denied=denied,
        limits_changed=changed,
        composition=migrated,
        homes=_homes(task, chosen, explicit),
    )


def future_event(pattern: EventPattern) -> str:
    """A name that stands for all events under a wildcard that do not exist yet."""
    return f"{pattern.prefix}{FUTURE}" if pattern.prefix else f"{FUTURE}:{FUTURE}"


def _steady_parts(composition: Composition) -> list[Part]:
    return [part for part in composition.parts if not part.when]


def _own_entries(composition: Composition) -> list[Template]:
    return [text for part in _steady_parts(composition) for text in part.allowed]


def _switched_on(composition: Composition) -> list[str]:
    flags = [flag for part in _steady_parts(composition) for flag in part.flags]
    off = {flag.capability for flag in flags if not flag.on}
    return [flag.capability for flag in flags if flag.capability not in off]


def _is_movable(text: Template, composition: Composition) -> bool:
    """An entry with a variable stays, and so does one that stands in another file."""
    return not text.is_open and text.place.file == composition.place.file


def _without_explicit(composition: Composition) -> Composition:
    parts = [
        part
        if part.when
        else msgspec.structs.replace(
            part, allowed=tuple(t for t in part.allowed if not _is_movable(t, composition))
        )
        for part in composition.parts
    ]
    return msgspec.structs.replace(composition, parts=tuple(parts))


def _with_written_events(catalogue: Catalogue, kin: Kin) -> Universe:
    """The events that exist, all that anybody wrote down, and one more under each wildcard."""
    patterns = [
        placed.pattern
        for definition in catalogue.capabilities.values()
        for placed in definition.event_patterns or ()
        if placed.pattern.exact
    ]
    for part in (part for composition in kin.everyone for part in composition.parts):
        for text in (t for t in (*part.allowed, *part.disallowed) if not t.is_open):
            entry = ToolEntry.parse(text.text, text.place)
            patterns += [entry.pattern] if entry.pattern else []
    names = {p.prefix if p.exact else future_event(p) for p in patterns}
    universe = catalogue.universe
    missing = sorted(names.difference(universe.names, universe.aliases))
    extra = [EventSpec(name=EventName(name)) for name in missing]
    return make_universe([*universe.specs.values(), *extra])


def _task_of(
    catalogue: Catalogue, kin: Kin, written: Universe, explicit: list[Template]
) -> CoverTask:
    before = compile_beside(catalogue, kin.steady, written)
    reduced = (_without_explicit(c) if c.name == kin.profile.name else c for c in kin.steady)
    after = compile_beside(catalogue, reduced, written)
    name = kin.profile.name
    entries = [ToolEntry.parse(text.text, text.place) for text in explicit]
    return _cover_task(before, kin, entries, before.grants[name], after.grants[name])


def _covered(task: CoverTask, chosen: Iterable[str]) -> int:
    covered = 0
    for name in chosen:
        covered |= task.need.pieces[name].covers
    return covered


def _additional(
    task: CoverTask, chosen: Iterable[str], explicit: list[Template]
) -> tuple[str, ...]:
    """The entries that stay, in the operator's own spelling."""
    stars, singles = task.need.rest(_covered(task, chosen))
    texts = {text for at, text in enumerate(task.stars) if stars >> at & 1}
    canonical = task.bits.catalogue.universe.canonical
    spelling = {canonical(text.text): text.text for text in reversed(explicit)}
    texts.update(spelling.get(name, name) for name in task.bits.names(singles))
    return tuple(sorted(texts.union(task.kept)))


def _homes(task: CoverTask, chosen: Iterable[str], explicit: list[Template]) -> dict[str, str]:
    """The new capability that gives most of each entry."""
    found = {}
    for text in explicit:
        bits = task.bits.of_entry(ToolEntry.parse(text.text, text.place))
        shares = {name: (task.need.pieces[name].covers & bits).bit_count() for name in chosen}
        best = max(sorted(shares), key=shares.__getitem__, default="")
        if best and shares[best]:
            found[text.text] = best
    return found


def _denials(task: CoverTask, chosen: Iterable[str]) -> tuple[str, ...]:
    extra = 0
    for name in chosen:
        extra |= task.need.pieces[name].extra
    return tuple(task.bits.names(extra))


def _migrated(
    composition: Composition,
    chosen: Iterable[str],
    additional: Iterable[str],
    denied: Iterable[str],
) -> Composition:
    rest = _without_explicit(composition)
    place = composition.place
    new = Part(
        flags=tuple(Flag(name, on=True, place=place) for name in chosen),
        allowed=tuple(Template(text, place) for text in additional),
        disallowed=tuple(Template(text, place) for text in denied),
    )
    return msgspec.structs.replace(rest, parts=(*rest.parts, new))


def _cover_task(
    catalogue: Catalogue, kin: Kin, entries: Iterable[ToolEntry], target: Grant, rest: Grant
) -> CoverTask:
    """Describe which capabilities may stand for the entries.

    Args:
        catalogue: capabilities and steady profiles, compiled over every event anybody wrote down.
        kin: who must not notice.
        entries: the explicit list.
        target: what the profile always grants.
        rest: what it always grants without the list.
    """
    entries = tuple(entries)
    bits = Bits(catalogue, _tools(catalogue, entries))
    gated = _gated(bits, kin) & ~bits.of(rest.bits, rest.claude_tools)
    shown = _shown(catalogue, rest)
    wanted = bits.of(
        _shown(catalogue, target) & ~shown,
        target.claude_tools - rest.claude_tools,
    )
    stars = sorted(
        {e.text: e for e in entries if _is_star(e)}.items(), key=lambda s: (len(s[0]), s[0])
    )
    need = Need(
        wanted=wanted,
        pieces=_pieces(bits, kin, target, wanted, gated),
        stars=tuple(_star(bits, entry) for _, entry in stars),
    )
    kept = {entry.text for entry in entries if bits.of_entry(entry) & gated}
    return CoverTask(bits, need, tuple(text for text, _ in stars), tuple(sorted(kept)))


def _shown(catalogue: Catalogue, grant: Grant) -> int:
    """What is not hidden from tool lists; events that are pushed never stand there anyway."""
    universe = catalogue.universe
    return universe.bits_of(grant.exposed) | (grant.bits & universe.pushed)


def _tools(catalogue: Catalogue, entries: tuple[ToolEntry, ...]) -> tuple[str, ...]:
    named = {entry.model_tool for entry in entries if entry.model_tool}
    for grant in catalogue.grants.values():
        named |= grant.claude_tools
    for definition in catalogue.capabilities.values():
        named.update(ref.name for ref in definition.claude_tools)
    return tuple(sorted(named))


def _is_star(entry: ToolEntry) -> bool:
    return entry.pattern is not None and not entry.pattern.exact


def _star(bits: Bits, entry: ToolEntry) -> Star:
    mark = future_event(entry.pattern) if entry.pattern else ""
    return Star(bits.of_entry(entry), bits.catalogue.universe.bits_of([mark]))


def _gated(bits: Bits, kin: Kin) -> int:
    """What waits for a review in the profile or in one that builds on it."""
    found = 0
    for name, definition in bits.catalogue.capabilities.items():
        if definition.security_review_required and _waits(bits.catalogue, kin, name):
            found |= bits.of_capability(name)
    return found


def _waits(catalogue: Catalogue, kin: Kin, name: str) -> bool:
    holders = (kin.profile.name, *kin.dependents)
    return any(catalogue.needs_review(holder, name) for holder in holders)


def _pieces(bits: Bits, kin: Kin, target: Grant, wanted: int, gated: int) -> dict[str, Piece]:
    catalogue = bits.catalogue
    granted = bits.of(target.bits, target.claude_tools)
    hidden = target.bits & ~_shown(catalogue, target)
    denied = _denied(bits, target)
    untouchable = gated | _may_be_granted(bits, kin) | _futures(bits)
    pieces = {}
    for name in _candidates(catalogue, kin):
        gives = shows = 0
        for member in catalogue.closures[name]:
            own = bits.of_capability(member)
            gives |= own
            shows |= own if catalogue.capabilities[member].mcp_tools else own & ~_events(bits)
        extra = gives & ~granted & ~denied
        if not (extra & untouchable or gives & gated or shows & hidden):
            pieces[name] = Piece(shows & wanted, extra)
    return pieces


def _candidates(catalogue: Catalogue, kin: Kin) -> list[str]:
    """Capabilities that may be chosen: available, in no need of review, not switched off."""
    own = {flag.capability for part in kin.profile.parts for flag in part.flags}
    taken = {catalogue.names.get(name, name) for name in own} | kin.unreliable
    return [
        name
        for name, definition in sorted(catalogue.capabilities.items())
        if definition.status == "available"
        and name not in taken
        and not any(_waits(catalogue, kin, member) for member in catalogue.closures[name])
    ]


def _events(bits: Bits) -> int:
    return bits.catalogue.universe.everything


def _denied(bits: Bits, grant: Grant) -> int:
    events = bits.catalogue.universe.bits_of(grant.denied_events)
    return bits.of(events, grant.denied_tools.intersection(bits.tools))


def _futures(bits: Bits) -> int:
    names = bits.catalogue.universe.names
    return bits.catalogue.universe.bits_of(name for name in names if name.endswith(FUTURE))


def _may_be_granted(bits: Bits, kin: Kin) -> int:
    """What must not be denied, because somebody grants it or may do so."""
    found = 0
    for part in kin.perhaps:
        for flag in part.flags:
            for member in bits.catalogue.closures[bits.catalogue.names[flag.capability]]:
                found |= bits.of_capability(member) if flag.on else 0
        found |= _listed(bits, part)
    return found


def _listed(bits: Bits, part: Part) -> int:
    found = 0
    for text in part.allowed:
        if text.is_open:
            start = text.fixed_start
            tools = [tool for tool in bits.tools if tool.startswith(start)]
            covered = bits.catalogue.universe.denied_by(EventPattern(start, exact=False))
            found |= bits.of(covered, tools)
        else:
            entry = ToolEntry.parse(text.text, text.place)
            tools = [entry.model_tool] if entry.model_tool in bits.tools else []
            covered = bits.catalogue.universe.denied_by(entry.pattern) if entry.pattern else 0
            found |= bits.of(covered, filter(None, tools))
    return found
