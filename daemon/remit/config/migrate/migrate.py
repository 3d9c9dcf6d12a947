"""Turn an explicit tool list into capabilities and a few overrides that grant exactly the same.

What holds only under a condition, or through a variable, stays as it is and is never relied upon;
profiles that build on the migrated one must not notice either. The answer is proven by compiling
it, against the events that exist and against all that anybody has written down.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from remit.config.migrate.kin import Kin, is_open, kin_of
from remit.config.migrate.offers import Offer, future_event, make_offer
from remit.config.migrate.proof import cheapest, compile_beside, prove_same
from remit.model.composition import Composition, Flag, Part, Template, ToolEntry
from remit.model.event import EventSpec
from remit.model.names import EventName
from remit.policy.catalogue import Catalogue
from remit.policy.universe import Universe, make_universe


class Migration(msgspec.Struct, frozen=True, kw_only=True):
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


def migrate(catalogue: Catalogue, composition: Composition) -> Migration:
    """Find the smallest set of capabilities and overrides that says the same as explicit lists.

    Raises:
        ConflictError: nothing was found that grants exactly the same.
        DefinitionError: the composition does not load against this catalogue.
    """
    kin = kin_of(catalogue, composition)
    explicit = [text for text in _own_entries(composition) if _is_movable(text, composition)]
    written = _with_written_events(catalogue, kin)
    offer = _offer(catalogue, kin, written, explicit)
    chosen = cheapest(offer.need)
    additional = _additional(offer, chosen, explicit)
    denied = _denials(offer, chosen)
    migrated = _migrated(composition, chosen, additional, denied)
    changed = prove_same(catalogue, kin, written, migrated)
    return Migration(
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
        homes=_homes(offer, chosen, explicit),
    )


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
    return not is_open(text) and text.place.file == composition.place.file


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
        for text in (t for t in (*part.allowed, *part.disallowed) if not is_open(t)):
            entry = ToolEntry.parse(text.text, text.place)
            patterns += [entry.pattern] if entry.pattern else []
    names = {p.prefix if p.exact else future_event(p) for p in patterns}
    universe = catalogue.universe
    missing = sorted(names.difference(universe.names, universe.aliases))
    extra = [EventSpec(name=EventName(name)) for name in missing]
    return make_universe([*universe.specs.values(), *extra])


def _offer(catalogue: Catalogue, kin: Kin, written: Universe, explicit: list[Template]) -> Offer:
    before = compile_beside(catalogue, kin.steady, written)
    reduced = (_without_explicit(c) if c.name == kin.profile.name else c for c in kin.steady)
    after = compile_beside(catalogue, reduced, written)
    name = kin.profile.name
    entries = [ToolEntry.parse(text.text, text.place) for text in explicit]
    return make_offer(before, kin, entries, before.grants[name], after.grants[name])


def _covered(offer: Offer, chosen: Iterable[str]) -> int:
    covered = 0
    for name in chosen:
        covered |= offer.need.pieces[name].covers
    return covered


def _additional(offer: Offer, chosen: Iterable[str], explicit: list[Template]) -> tuple[str, ...]:
    """The entries that stay, in the operator's own spelling."""
    stars, singles = offer.need.rest(_covered(offer, chosen))
    texts = {text for at, text in enumerate(offer.stars) if stars >> at & 1}
    canonical = offer.bits.catalogue.universe.canonical
    spelling = {canonical(text.text): text.text for text in reversed(explicit)}
    texts.update(spelling.get(name, name) for name in offer.bits.names(singles))
    return tuple(sorted(texts.union(offer.kept)))


def _homes(offer: Offer, chosen: Iterable[str], explicit: list[Template]) -> dict[str, str]:
    """The new capability that gives most of each entry."""
    found = {}
    for text in explicit:
        bits = offer.bits.of_entry(ToolEntry.parse(text.text, text.place))
        shares = {name: (offer.need.pieces[name].covers & bits).bit_count() for name in chosen}
        best = max(sorted(shares), key=shares.__getitem__, default="")
        if best and shares[best]:
            found[text.text] = best
    return found


def _denials(offer: Offer, chosen: Iterable[str]) -> tuple[str, ...]:
    extra = 0
    for name in chosen:
        extra |= offer.need.pieces[name].extra
    return tuple(offer.bits.names(extra))


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
