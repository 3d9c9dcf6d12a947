"""Skills as callers see them: who sees which, what they are, and what their files hold.

A skill belongs to the capabilities that name it: who does not hold one of them is not shown it.
Describing and reading block, for they read folders: call them in a worker thread.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from remit.errors import Place, Problem
from remit.features.skills.files import SkillReader
from remit.features.skills.skill_file import SKILL_FILE
from remit.model.capability import Capability
from remit.model.descriptor import NOBODY, Descriptor
from remit.model.event import Service
from remit.model.grant import Grant
from remit.model.names import did_you_mean
from remit.model.schema import BODY_BYTES

MAX_DESCRIPTION = 1_024
_NAME = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Controls: six bytes each in JSON, and no text that anybody wrote."""


def bind_skills(
    descriptors: Iterable[Descriptor], capabilities: Iterable[Capability]
) -> tuple[Descriptor, ...]:
    """The descriptors with `capabilities` filled in for the skills that capabilities name.

    A manifest may say itself who sees it. Then both must agree: only holders of a capability on
    both sides see it, and nobody does when there is none.
    """
    owners = _owners(capabilities)
    return tuple(_bound(descriptor, owners) for descriptor in descriptors)


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


class Shown(Protocol):
    """Answers the descriptors that discovery shows to the holder of a grant."""

    async def __call__(self, grant: Grant, *, everything: bool) -> Iterable[Descriptor]:
        """Only those; `everything` is for who sees everything."""


class SkillCatalogue(Service):
    """The skills that discovery shows, and the reader of their files."""

    def __init__(self, reader: SkillReader, shown: Shown) -> None:
        self.reader = reader
        self._shown = shown

    async def visible(self, grant: Grant, *, everything: bool) -> dict[str, Descriptor]:
        """The skills that the holder of a grant may see, by id."""
        found = await self._shown(grant, everything=everything)
        return {one.id: one for one in found if one.kind == "skill"}


def describe_page(
    skills: Sequence[Descriptor], reader: SkillReader, *, files: bool
) -> list[dict[str, Any]]:
    """As many as fit into a message, one at the least."""
    described: list[dict[str, Any]] = []
    left = BODY_BYTES
    for skill in skills:
        one = describe_skill(skill, reader, files=files)
        left -= len(msgspec.json.encode(one))
        if left < 0 and described:
            break
        described.append(one)
    return described


def describe_skill(skill: Descriptor, reader: SkillReader, *, files: bool) -> dict[str, Any]:
    """One skill; `files` says whether its files are looked at as well."""
    source = skill.source
    frontmatter = reader.frontmatter(source)
    described = {
        "id": skill.id,
        "name": skill.name,
        "title": skill.title,
        "description": skill.description,
        "content": source.content_file or None,
        "frontmatter": frontmatter,
        "deviations": _deviations(skill, frontmatter),
    }
    if not files:
        return described
    found = reader.files(source)
    return described | {
        "files": [msgspec.structs.asdict(one) for one in found.files],
        "left_out": [msgspec.structs.asdict(one) for one in found.left_out],
    }


def read_file(skill: Descriptor, path: str, reader: SkillReader) -> dict[str, Any] | None:
    """One file of a skill; None when it has no such file."""
    raw = reader.read(skill.source, path)
    if raw is None:
        return None
    text = _text(raw)
    return {
        "id": skill.id,
        "path": path,
        "size": len(raw),
        "sha256": sha256(raw).hexdigest(),
        "encoding": "base64" if text is None else "utf-8",
        "content": b64encode(raw).decode() if text is None else text,
    }


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


def _deviations(skill: Descriptor, frontmatter: dict[str, Any]) -> list[str]:
    """What keeps a skill from being one by the standard that hosts hold servers to."""
    if skill.source.content_file != SKILL_FILE:
        return [f"its text is not a file {SKILL_FILE}"]
    found = []
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        found.append("'name' must be lowercase letters, digits and single hyphens, at most 64")
    elif skill.id != f"skill:{name}":
        found.append(f"'name' is {name!r}, and its id is {skill.id!r}")
    if not isinstance(description, str) or not description.strip():
        found.append("'description' must be a text")
    elif len(description) > MAX_DESCRIPTION:
        found.append(f"'description' has more than {MAX_DESCRIPTION:,} characters")
    return found


def _text(raw: bytes) -> str | None:
    """The text whose bytes these are, to the last one; None when they are no text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT.search(text) else text
