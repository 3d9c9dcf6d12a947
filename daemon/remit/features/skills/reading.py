"""Skills as callers read them: what they are, which files belong to them, and what those hold.

Blocks: it reads folders. Call it in a worker thread.
"""

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from remit.features.skills.files import SkillReader
from remit.features.skills.skill_file import SKILL_FILE
from remit.model.descriptor import Descriptor
from remit.model.requests import BODY_BYTES

MAX_DESCRIPTION = 1_024
_NAME = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Controls: six bytes each in JSON, and no text that anybody wrote."""


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


def _text(raw: bytes) -> str | None:
    """The text whose bytes these are, to the last one; None when they are no text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT.search(text) else text


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
