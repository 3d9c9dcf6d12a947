"""The profiles that a rewritten profile touches, and what may come true in them some day.

A rewrite must be right for every value of the variables and for every profile that builds on the
rewritten one. So what a profile always says is told apart from what is said only under a condition,
through a variable, or by somebody who builds on it.
"""

from collections.abc import Iterable

import msgspec

from remit.model.composition import Composition, Part
from remit.model.launch import Template
from remit.policy.catalogue import Catalogue
from remit.policy.compile import lineages

_OPEN = "{{"


class Kin(msgspec.Struct, frozen=True, kw_only=True):
    """A profile, all it builds on, and all that build on it."""

    profile: Composition
    steady: tuple[Composition, ...]
    """The profile and what it always builds on, reduced to what they always say."""
    dependents: tuple[str, ...]
    everyone: tuple[Composition, ...]
    """All compositions that are needed to resolve the profile and its dependents."""
    perhaps: tuple[Part, ...]
    """What may be said beside the steady parts."""
    unreliable: frozenset[str]
    """Capabilities that somebody may switch off."""


def kin_of(catalogue: Catalogue, profile: Composition) -> Kin:
    """Find everybody that a change of this profile can touch."""
    compositions = {**catalogue.compositions, profile.name: profile}
    lines = lineages(compositions, [])
    dependents = sorted(
        name for name, line in lines.items() if profile in line and name != profile.name
    )
    touched = {c.name: c for name in (profile.name, *dependents) for c in lines[name]}
    always = _always(compositions, profile)
    # Whoever builds on the profile may also build on its parents directly, beside it: then the
    # profile's own word no longer stands over theirs.
    settled = {profile.name} if dependents else always
    perhaps = [
        part
        for name, composition in sorted(touched.items())
        for part in (_shaky(composition) if name in settled else composition.parts)
    ]
    names = catalogue.names
    off = {
        names[f.capability] for p in perhaps for f in p.flags if not f.on and f.capability in names
    }
    stopped = [_stopped_flags(c, catalogue, off) for name, c in touched.items() if name in always]
    return Kin(
        profile=profile,
        steady=tuple(_steady(touched[name], catalogue, off) for name in sorted(always)),
        dependents=tuple(dependents),
        everyone=tuple(touched.values()),
        perhaps=(*perhaps, *stopped),
        unreliable=frozenset(off),
    )


def is_open(text: Template) -> bool:
    """Tell whether an entry holds a variable."""
    return _OPEN in text.text


def fixed_start(text: Template) -> str:
    """What an entry with a variable is sure to begin with."""
    return text.text.partition(_OPEN)[0]


def _always(compositions: dict[str, Composition], profile: Composition) -> set[str]:
    """The names reached without any condition."""
    reached: set[str] = set()
    frontier = [profile.name]
    while frontier:
        name = frontier.pop()
        if name not in reached and name in compositions:
            reached.add(name)
            frontier += [ref.name for ref in compositions[name].extends]
            frontier += [mixin.ref.name for mixin in compositions[name].mixins if not mixin.when]
    return reached


def _shaky(composition: Composition) -> Iterable[Part]:
    for part in composition.parts:
        if part.when:
            yield part
        else:
            yield Part(allowed=tuple(text for text in part.allowed if is_open(text)))


def _stopped_flags(composition: Composition, catalogue: Catalogue, off: set[str]) -> Part:
    flags = [flag for part in composition.parts for flag in part.flags if flag.on]
    return Part(flags=tuple(f for f in flags if catalogue.names.get(f.capability) in off))


def _steady(composition: Composition, catalogue: Catalogue, off: set[str]) -> Composition:
    return msgspec.structs.replace(
        composition,
        mixins=tuple(mixin for mixin in composition.mixins if not mixin.when),
        parts=tuple(
            msgspec.structs.replace(
                part,
                flags=tuple(
                    f
                    for f in part.flags
                    if not f.on or catalogue.names.get(f.capability) not in off
                ),
                allowed=tuple(text for text in part.allowed if not is_open(text)),
                disallowed=tuple(text for text in part.disallowed if not is_open(text)),
            )
            for part in composition.parts
            if not part.when
        ),
    )
