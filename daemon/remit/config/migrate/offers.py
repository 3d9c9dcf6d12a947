"""What the catalogue offers in place of an explicit list: pieces for the cheapest cover.

Everything here works on bits: one for each event of the catalogue, then one for each model tool.
"""

from collections.abc import Iterable

import msgspec

from remit.config.migrate.kin import Kin, fixed_start, is_open
from remit.config.migrate.proof import Need, Piece, Star
from remit.model.composition import Part, ToolEntry
from remit.model.grant import Grant
from remit.model.names import EventPattern
from remit.policy.catalogue import Catalogue

FUTURE = "remit_future"


def future_event(pattern: EventPattern) -> str:
    """A name that stands for all events under a wildcard that do not exist yet."""
    return f"{pattern.prefix}{FUTURE}" if pattern.prefix else f"{FUTURE}:{FUTURE}"


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


class Offer(msgspec.Struct, frozen=True):
    """The task of finding a replacement, and the means to read its solution."""

    bits: Bits
    need: Need
    stars: tuple[str, ...]
    """The texts of the wildcard entries, in the order of the need's stars."""
    kept: tuple[str, ...]
    """Entries that wait for a review and therefore must stay."""


def make_offer(
    catalogue: Catalogue, kin: Kin, entries: Iterable[ToolEntry], target: Grant, rest: Grant
) -> Offer:
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
    return Offer(bits, need, tuple(text for text, _ in stars), tuple(sorted(kept)))


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
        if is_open(text):
            start = fixed_start(text)
            tools = [tool for tool in bits.tools if tool.startswith(start)]
            covered = bits.catalogue.universe.denied_by(EventPattern(start, exact=False))
            found |= bits.of(covered, tools)
        else:
            entry = ToolEntry.parse(text.text, text.place)
            tools = [entry.model_tool] if entry.model_tool in bits.tools else []
            covered = bits.catalogue.universe.denied_by(entry.pattern) if entry.pattern else 0
            found |= bits.of(covered, filter(None, tools))
    return found
