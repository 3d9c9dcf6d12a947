"""Cutting a request with many steps into its steps, so that each can find its own tool."""

import re
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from remit.errors import DefinitionError
from remit.features.discovery.counting import TokenCounter, text_hash
from remit.features.discovery.cutting import closed, shortened_to
from remit.features.discovery.index import MAX_DESCRIPTORS, Index
from remit.features.discovery.schema_text import schema_lines
from remit.model.descriptor import Descriptor
from remit.text.unicode import many_lines, one_line
from remit.text.words import words

MAX_CLAUSES = 6
MAX_REQUEST = 4_000
"""Characters of a request that are looked at; what follows is mostly pasted material."""

_BORDER = re.compile(
    r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+"  # noqa: RUF001 - the stops of other scripts
    r"|,?\s+(?:and then|then|and also|also|and|und dann|y luego|puis)\s+",
    re.IGNORECASE,
)
_OPENING = re.compile(r"(?:and |then |also |finally |first |next |after that |,)+", re.IGNORECASE)
_MEANT = 2
"""A clause of fewer words than these says too little to search with."""


def shortened(request: str) -> str:
    """The request as far as it is looked at, on one level of blanks."""
    return " ".join(request[: MAX_REQUEST * 2].split())[:MAX_REQUEST]


def clauses(request: str) -> list[str]:
    """The steps of a request; nothing when it has only one."""
    parts = [_bare(part) for part in _BORDER.split(request[:MAX_REQUEST]) if part]
    parts = [part for part in parts if len(words(part)) >= _MEANT]
    return parts[:MAX_CLAUSES] if len(parts) > 1 else []


def _bare(part: str) -> str:
    part = part.strip()
    opening = _OPENING.match(part)
    return part[opening.end() :].strip() if opening else part


# What is shown of one descriptor: its line in the summary, and its full text.
#
# Written once for each index and remembered. Names of secrets are shown, never values: a
# descriptor has none.


MAX_CONTENT = 400_000
"""Characters of a skill that are looked at."""
_NAME = 100
_DESCRIPTION = 240
_PARAMETERS = 10
_NEEDS = 6
_CONTENTS = 64
_LINES = 20_000
LABEL = 40
"""Characters of a name in a list of groups."""
_SIDE_EFFECTS = "Has side effects: it changes something outside of this conversation."
_UNKNOWN_EFFECT = "May have side effects: its author has not said what it changes."
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n.{0,20000}?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
"""The head of a SKILL.md: what it says is in the descriptor already."""


class Line:
    """The parts of a summary line; the description is what can be shortened."""

    __slots__ = ("about", "extras", "full_name", "name")

    def __init__(self, descriptor: Descriptor, missing: Sequence[str] = ()) -> None:
        self.name = f"{name_of(descriptor)} ({descriptor.kind})."
        self.full_name = f"{shortened_to(one_line(descriptor.id), _NAME)} ({descriptor.kind})."
        """For when another hit has the same name."""
        about = shortened_to(one_line(descriptor.description), _DESCRIPTION)
        self.about = about if not about or about[-1] in ".!?…。！？" else f"{about}."  # noqa: RUF001
        self.extras = " ".join(_extras(descriptor, missing))

    def text(self, name: str) -> str:
        """All of it, behind this name."""
        return " ".join(part for part in (name, self.about, self.extras) if part)


class Texts:
    """The texts of the descriptors of one index."""

    def __init__(self, index: Index) -> None:
        # The descriptors alone: this is kept for as long as the index is, and must not hold it.
        self._descriptors = index.descriptors
        self._missing = index.graph.missing
        self._lines: dict[int, Line] = {}
        self._details: dict[int, tuple[str, str]] = {}

    def line(self, row: int) -> Line:
        """The summary line of a row."""
        known = self._lines.get(row)
        if known is None:
            known = Line(self._descriptors[row], self._missing.get(row, ()))
            if len(self._lines) >= _LINES:
                self._lines.clear()
            self._lines[row] = known
        return known

    def detail(self, row: int, content: str) -> str:
        """Everything about a row, with the content of the skill that it is, if it is one."""
        known = self._details.get(row)
        if known is not None and known[0] == content:
            return known[1]
        text = detail_text(self._descriptors[row], content, self._missing.get(row, ()))
        if len(self._details) >= _CONTENTS:
            self._details.clear()
        self._details[row] = (content, text)
        return text


_TEXTS: WeakKeyDictionary[Index, Texts] = WeakKeyDictionary()


def texts_of(index: Index) -> Texts:
    """The texts of an index, for as long as there is that index."""
    known = _TEXTS.get(index)
    if known is None:
        known = _TEXTS[index] = Texts(index)
    return known


def name_of(descriptor: Descriptor) -> str:
    """The name as it is called, on one line."""
    return shortened_to(one_line(descriptor.name) or one_line(descriptor.id), _NAME)


def label_of(descriptor: Descriptor) -> str:
    """The group that a descriptor stands in: its category, else its server, else its kind."""
    label = one_line(descriptor.category) or one_line(descriptor.server) or descriptor.kind
    return shortened_to(label, LABEL)


def has_content(descriptor: Descriptor) -> bool:
    """Tell whether there is more to read than the descriptor itself."""
    return descriptor.kind == "skill" or bool(descriptor.source.content_file)


def detail_text(descriptor: Descriptor, content: str = "", missing: Sequence[str] = ()) -> str:
    """Everything about a descriptor that a model needs to use it; `missing`: tools it has not."""
    title = one_line(descriptor.title) or name_of(descriptor)
    parts = [f"# {shortened_to(title, _NAME)}\n{_facts(descriptor)}"]
    about = many_lines(descriptor.description)
    text = many_lines(_FRONT_MATTER.sub("", content[:MAX_CONTENT]))
    if about:
        parts.append(closed(about))
    lines = _schema(descriptor)
    if lines:
        parts.append("## Input\n" + "\n".join(lines))
    notes = _notes(descriptor, missing)
    if notes:
        parts.append("\n".join(notes))
    if text:
        parts.append(closed(text))
    return "\n\n".join(parts)


def _facts(descriptor: Descriptor) -> str:
    facts = [f"Id: {one_line(descriptor.id)}", f"Kind: {descriptor.kind}"]
    if descriptor.category:
        facts.append(f"Category: {one_line(descriptor.category)}")
    if descriptor.server:
        facts.append(f"Server: {one_line(descriptor.server)}")
    return " | ".join(facts)


def _schema(descriptor: Descriptor) -> list[str]:
    if descriptor.full_schema is not None:
        return schema_lines(descriptor.full_schema)
    fields = {
        one.name: {"type": one.type, "description": one.description}
        for one in descriptor.parameters
    }
    needed = [one.name for one in descriptor.parameters if one.required]
    return schema_lines({"properties": fields, "required": needed})


def _notes(descriptor: Descriptor, missing: Sequence[str]) -> list[str]:
    notes = []
    if descriptor.required_secrets:
        notes.append(f"Required secrets: {_list(descriptor.required_secrets)}")
    if descriptor.required_tools:
        notes.append(f"Requires: {_list(descriptor.required_tools)}")
    if descriptor.has_side_effects:
        notes.append(_SIDE_EFFECTS if descriptor.is_effect_known else _UNKNOWN_EFFECT)
    if missing or not descriptor.available:
        notes.append(_unavailable(descriptor, missing))
    return notes


def _extras(descriptor: Descriptor, missing: Sequence[str]) -> list[str]:
    extras = []
    names = [one.name for one in descriptor.parameters]
    if names:
        extras.append(f"Params: {_list(names, _PARAMETERS)}.")
    if descriptor.required_tools:
        extras.append(f"Requires: {_list(descriptor.required_tools, _NEEDS)}.")
    if descriptor.required_secrets:
        extras.append(f"Secrets: {_list(descriptor.required_secrets, _NEEDS)}.")
    if descriptor.has_side_effects:
        extras.append("Side effects." if descriptor.is_effect_known else "May have side effects.")
    if missing or not descriptor.available:
        extras.append(_unavailable(descriptor, missing))
    return extras


def _unavailable(descriptor: Descriptor, missing: Sequence[str]) -> str:
    reason = shortened_to(one_line(descriptor.unavailable_because), _NAME).rstrip(".")
    if missing and not reason:
        reason = f"nothing here is called {_list(missing, _NEEDS)}"
    return f"Unavailable: {reason}." if reason else "Unavailable."


def _list(names: Sequence[str], most: int = 50) -> str:
    shown = ", ".join(shortened_to(one_line(name), _NAME) for name in names[:most])
    return shown if len(names) <= most else f"{shown} (+{len(names) - most} more)"


# What a list of all tools would have cost.


_REMEMBERED = 2 * MAX_DESCRIPTORS
"""Costs that are kept: those of an index and of the one before it."""
_COSTS: dict[tuple[str, bytes], int] = {}


def full_dump_tokens(
    descriptor: Descriptor, counter: TokenCounter, content: Callable[[Descriptor], str]
) -> int:
    """What a descriptor would cost in a list of everything: its definition, or all of its text."""
    text = dumped(descriptor, content)
    key = (counter.name, text_hash(text))
    known = _COSTS.get(key)
    if known is None:
        known = counter.count(text)
        if len(_COSTS) >= _REMEMBERED:
            _COSTS.clear()
        _COSTS[key] = known
    return known


def dumped(descriptor: Descriptor, content: Callable[[Descriptor], str]) -> str:
    """A descriptor as it would stand in a list of everything."""
    if descriptor.kind == "skill" and has_content(descriptor):
        try:
            text = content(descriptor)
        except (OSError, UnicodeError, DefinitionError):
            text = ""  # it would be listed, without what cannot be read
        if text:
            return text
    listed: dict[str, Any] = {"name": descriptor.name, "description": descriptor.description}
    if descriptor.kind == "tool":
        listed["input_schema"] = _whole_schema(descriptor)
    try:
        return msgspec.json.encode(listed).decode()
    except (TypeError, ValueError):  # half a pair, or what JSON has not: it costs about the same
        return repr(listed)


def _whole_schema(descriptor: Descriptor) -> dict[str, Any]:
    if descriptor.full_schema is not None:
        return descriptor.full_schema
    return {
        "type": "object",
        "properties": {
            one.name: {"type": one.type, "description": one.description}
            for one in descriptor.parameters
        },
        "required": [one.name for one in descriptor.parameters if one.required],
    }
