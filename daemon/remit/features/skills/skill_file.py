"""SKILL.md: a skill as other programs write it, and how it becomes a descriptor.

The format is not ours: unknown keys are passed over, one word may stand for a list, and some
writers put their keys into `metadata`. What cannot be read at all is still told with its place.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from remit.config.strict.frontmatter import Markdown, read_markdown
from remit.config.strict.kinds import Report
from remit.config.strict.yaml import Mapping, Node, Scalar, Sequence
from remit.errors import Place
from remit.model.descriptor import Descriptor, SourceRef

SKILL_FILE = "SKILL.md"
SKILL_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
MAX_DESCRIPTION = 4_096

SKILL_KEYS: dict[str, tuple[str, ...]] = {
    "name": (),
    "description": (),
    "display_name": ("displayName", "title"),
    "category": (),
    "categories": (),
    "namespace": (),
    "tags": ("keywords",),
    "requires_tools": ("tools_required", "required_tools", "requiredTools"),
    "requires_secrets": ("secrets_required", "required_secrets", "requiredSecrets"),
}
"""The keys that are read, each with its other spellings."""

_PROSE = re.compile(r"(?!#|```|~~~|\||<|!\[|---|===)\S")
_FIRST_WORDS = 400


def read_skill_file(raw: bytes, file: str, folder: Path, report: Report) -> Descriptor | None:
    """Read a skill; None after a problem was reported.

    Args:
        raw: the bytes of the file.
        file: its name in messages.
        folder: where it lies; its name is the skill's when the file does not say.
        report: takes the problems.
    """
    markdown, problems = read_markdown(raw, file, required=True)
    own = Report()
    own.extend(problems)
    found = None if problems else _skill(markdown, file, folder, own)
    report.extend(own.problems)
    return None if own.count else found


def _skill(markdown: Markdown, file: str, folder: Path, report: Report) -> Descriptor:
    keys = _Keys(markdown.keys, report)
    name = keys.text("name") or folder.name
    if not re.fullmatch(SKILL_NAME, name):
        hint = "letters, digits, '-', '_' and '.', at most 64"
        report.add(keys.place("name", file), "invalid_name", f"{name!r} is not a skill name", hint)
    description = keys.text("description") or _first_words(markdown.body)
    if not description:
        hint = "say in one line when the skill helps"
        report.add(Place(file), "missing_key", "a skill needs the key 'description'", hint)
    elif len(description) > MAX_DESCRIPTION:
        message = f"the description has more than {MAX_DESCRIPTION:,} characters"
        report.add(keys.place("description", file), "too_large", message, "shorten it")
    return Descriptor(
        id=f"skill:{name}",
        kind="skill",
        name=name,
        display_name=keys.text("display_name") or shown_name(name),
        description=description,
        category=keys.text("category") or next(iter(keys.words("categories")), ""),
        server=keys.text("namespace"),
        tags=keys.words("tags"),
        required_tools=keys.words("requires_tools"),
        required_secrets=keys.words("requires_secrets"),
        source=SourceRef(
            "skill", place=Place(file), content_file=SKILL_FILE, root=str(folder.absolute())
        ),
    )


class _Keys:
    """The keys of a skill: those of the file first, then those that stand in its metadata."""

    def __init__(self, top: Mapping | None, report: Report) -> None:
        self._report = report
        self._levels = [] if top is None else [_by_name(top), *_metadata(top)]

    def text(self, name: str) -> str:
        """A key as text; empty when there is none."""
        node = self._find(name)
        if node is None:
            return ""
        if isinstance(node, Scalar):
            return " ".join(node.text.split())
        self._report.add(node.place, "wrong_type", "expected text, found a collection")
        return ""

    def words(self, name: str) -> tuple[str, ...]:
        """A key as words; one text is cut at its commas."""
        node = self._find(name)
        if node is None:
            return ()
        if isinstance(node, Scalar):
            return _distinct(node.text.split(","))
        if isinstance(node, Sequence):
            return _distinct(self._items(node))
        self._report.add(node.place, "wrong_type", "expected a list, found a mapping")
        return ()

    def place(self, name: str, file: str) -> Place:
        """Where a key's value stands, or the file."""
        node = self._find(name)
        return node.place if node is not None else Place(file)

    def _items(self, node: Sequence) -> Iterable[str]:
        for item in node.items:
            if isinstance(item, Scalar):
                yield item.text
            else:
                self._report.add(item.place, "wrong_type", "expected text, found a collection")

    def _find(self, name: str) -> Node | None:
        spellings = (name, *SKILL_KEYS[name])
        found = (level[one] for level in self._levels for one in spellings if one in level)
        return next(found, None)


def _metadata(top: Mapping) -> list[dict[str, Node]]:
    """The keys in `metadata`, and those that a program keeps there under its own name."""
    found = _by_name(top).get("metadata")
    if not isinstance(found, Mapping):
        return []
    inner = [_by_name(value) for _key, value in found.pairs if isinstance(value, Mapping)]
    return [_by_name(found), *inner]


def _by_name(mapping: Mapping) -> dict[str, Node]:
    """The keys that have a value."""
    return {
        key.text: value
        for key, value in mapping.pairs
        if not (isinstance(value, Scalar) and value.value is None)
    }


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))


def shown_name(name: str) -> str:
    """The name for people: each segment with a capital."""
    segments = [segment for segment in re.split(r"[-_.:\s]+", name) if segment]
    return " ".join(segment[0].upper() + segment[1:] for segment in segments)


def _first_words(body: str) -> str:
    """The beginning of the first paragraph that is prose."""
    for paragraph in re.split(r"\n\s*\n", body.replace("\r\n", "\n"), maxsplit=50)[:50]:
        if _PROSE.match(paragraph.lstrip()):
            words = " ".join(paragraph.split())
            return words if len(words) <= _FIRST_WORDS else words[:_FIRST_WORDS].rpartition(" ")[0]
    return ""
