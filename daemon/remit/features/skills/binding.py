"""Which capability a skill belongs to: who does not hold one of them is not shown the skill."""

from collections.abc import Iterable, Sequence

import msgspec

from remit.model.capability import Capability
from remit.model.descriptor import NOBODY, Descriptor
from remit.model.names import did_you_mean
from remit.model.place import Place, Problem


def bind_skills(
    descriptors: Iterable[Descriptor], capabilities: Iterable[Capability]
) -> tuple[Descriptor, ...]:
    """The descriptors with `capabilities` filled in for the skills that capabilities name.

    A manifest may say itself who sees it. Then both must agree: only holders of a capability on
    both sides see it, and nobody does when there is none.
    """
    owners = _owners(capabilities)
    return tuple(_bound(descriptor, owners) for descriptor in descriptors)


def _bound(descriptor: Descriptor, owners: dict[str, tuple[str, ...]]) -> Descriptor:
    named = _owners_of(descriptor, owners)
    if not named:
        return descriptor
    own = descriptor.capabilities
    agreed = tuple(name for name in named if name in own) if own else named
    return msgspec.structs.replace(descriptor, capabilities=agreed or (NOBODY,))


def _owners_of(descriptor: Descriptor, owners: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if descriptor.kind != "skill":
        return ()
    both = (*owners.get(descriptor.name, ()), *owners.get(descriptor.id, ()))
    return tuple(sorted(set(both)))


def _owners(capabilities: Iterable[Capability]) -> dict[str, tuple[str, ...]]:
    """The capabilities that name each skill, by the name or id that they use."""
    found: dict[str, tuple[str, ...]] = {}
    for capability in capabilities:
        for skill in capability.skills:
            found[skill] = (*found.get(skill, ()), capability.id)
    return found


def binding_problems(
    descriptors: Sequence[Descriptor], capabilities: Sequence[Capability]
) -> tuple[Problem, ...]:
    """Names that bind nothing; each leaves something hidden, so these are warnings."""
    skills = [one for one in descriptors if one.kind == "skill"]
    return (
        *_missing_skills(skills, capabilities),
        *_missing_capabilities(descriptors, {one.id for one in capabilities}),
        *_disagreements(skills, capabilities),
    )


def _missing_skills(
    skills: Sequence[Descriptor], capabilities: Sequence[Capability]
) -> Iterable[Problem]:
    known = {name for one in skills for name in (one.name, one.id)}
    for capability in capabilities:
        for skill in capability.skills:
            if skill not in known:
                message = f"no skill {skill!r} was found in the capability directories"
                hint = did_you_mean(skill, known)
                yield _warning(capability.place, "unknown_skill", message, hint)


def _missing_capabilities(descriptors: Sequence[Descriptor], known: set[str]) -> Iterable[Problem]:
    for one in descriptors:
        missing = [name for name in one.capabilities if name not in known and name != NOBODY]
        if missing:
            message = f"{one.id}: nobody can hold the capability {missing[0]!r}: there is none"
            hint = did_you_mean(missing[0], known)
            place = one.source.place or Place(one.id)
            yield _warning(place, "unknown_capability", message, hint)


def _disagreements(
    skills: Sequence[Descriptor], capabilities: Sequence[Capability]
) -> Iterable[Problem]:
    owners = _owners(capabilities)
    for one in skills:
        named = _owners_of(one, owners)
        if named and one.capabilities and not set(named) & set(one.capabilities):
            message = (
                f"{one.id} is shown to nobody: its file names {', '.join(one.capabilities)}, "
                f"capabilities.yaml names it in {', '.join(named)}"
            )
            place = one.source.place or Place(one.id)
            yield _warning(place, "hidden_skill", message, "name one capability in both")


def _warning(place: Place, code: str, message: str, hint: str) -> Problem:
    return Problem(place, code, message, hint, severity="warning")
