"""What is put before a model, cut into texts that know where they stand.

A tool is read string by string: names of parameters, values, examples and titles reach a model as
surely as descriptions do.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import PurePath
from typing import Literal

import msgspec

from remit.config.strict.json import JsonString, Path, raw_offset
from remit.errors import Place

Kind = Literal["tool", "skill", "card", "capability", "composition", "server", "file"]
Role = Literal["name", "prose"]

_LINE = re.compile("\n")
_SPACE = re.compile(r"\s")
_NEEDLES = (48, 16, 6)
_AROUND = 4_000
_MAX_NAME = 200
_FORM = (
    "type object string number integer boolean array null properties required items enum default "
    "description title anyOf oneOf allOf not format additionalProperties $schema $ref $defs const "
    "examples minimum maximum minLength maxLength minItems maxItems pattern name inputSchema "
    "outputSchema input_schema output_schema annotations readOnlyHint destructiveHint "
    "idempotentHint openWorldHint propertyNames uniqueItems definitions"
)
_VOCABULARY = frozenset(_FORM.split())
"""Words of the form itself: they say nothing, and stand there thousands of times."""
_SERVER_KEYS = ("mcpServers", "servers")
_COMMAND = frozenset({"command", "args", "url", "description"})
"""What is read of a host's file: values of `env` and `headers` may be secrets."""


def role_of(value: str) -> Role:
    """A name is one word; whatever else it may be, it is not read as a sentence."""
    return "name" if len(value) <= _MAX_NAME and not _SPACE.search(value) else "prose"


class SourceFile:
    """A file as text, and the places of its offsets."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._lines: list[int] | None = None

    def place(self, at: int) -> Place:
        """Where an editor shows the character at `at`."""
        lines = self._starts()
        line = bisect_right(lines, at)
        return Place(self.file, line, at - lines[line - 1] + 1)

    def offset(self, place: Place) -> int:
        """The way back; the end for a place that is not there."""
        lines = self._starts()
        if place.line > len(lines):
            return len(self.text)
        return min(lines[place.line - 1] + place.column - 1, len(self.text))

    def _starts(self) -> list[int]:
        if self._lines is None:
            self._lines = [0, *(match.end() for match in _LINE.finditer(self.text))]
        return self._lines


class SubjectText(msgspec.Struct, frozen=True, eq=False):
    """A text that a model reads.

    `start` is where it stands in its file. How the offsets of the two belong together depends on
    who wrote the file: the same, after the escapes of JSON, or only by looking for the words.
    """

    value: str
    source: SourceFile
    start: int = 0
    role: Role = "prose"
    raw: str | None = None
    """As JSON writes it."""
    is_exact: bool = True

    def place(self, at: int) -> Place:
        """Where the character at `at` stands in the file."""
        if self.raw is not None:
            return self.source.place(self.start + raw_offset(self.raw, at))
        if self.is_exact:
            return self.source.place(self.start + at)
        return self.source.place(self._look_for(at))

    def _look_for(self, at: int) -> int:
        """Folding and quoting move words and rarely break them."""
        rest = self.value[at : at + _NEEDLES[0]].partition("\n")[0]
        end = self.start + 2 * len(self.value) + _AROUND
        for length in _NEEDLES:
            needle = rest[:length].strip()
            found = self.source.text.find(needle, self.start, end) if needle else -1
            if found >= 0:
                return found
        return self.start


class Subject(msgspec.Struct, frozen=True, eq=False):
    """One thing that models are told about."""

    id: str
    kind: Kind
    texts: tuple[SubjectText, ...]
    name: str = ""
    """Of a tool: the name that it is called by."""
    server: str = ""
    """Of a tool: whose it is; empty: ours."""
    note: str = ""
    """What else to say about it, such as that it waits for a review."""

    @property
    def instructs(self) -> bool:
        """Tell whether it is there to tell an agent who it is and what to do."""
        return self.kind in ("skill", "card", "capability", "composition", "file")


def tools_in(source: SourceFile, strings: list[JsonString]) -> Iterator[Subject]:
    """Every tool of an answer to tools/list, or of what is pinned about a server."""
    groups: dict[Path, list[JsonString]] = {}
    for one in strings:
        prefix = _tool_prefix(one)
        if prefix is not None:
            groups.setdefault(prefix, []).append(one)
    server = _value(strings, "server") or _value(strings, "name") or PurePath(source.file).stem
    rejected = {one.path[:-1] for one in strings if _says_rejected(one)}
    for prefix, parts in groups.items():
        if prefix[:-1] in rejected and prefix[-1] == "pending":
            continue  # nobody will be shown it
        name = next((p.value for p in parts if p.path == (*prefix, "name") and not p.is_key), "")
        if name or "tools" in prefix:  # a tool without a name is read as well
            yield Subject(
                f"tool:{server}/{name or prefix[-1]}",
                "tool",
                tuple(_texts(source, parts, (*prefix, "name"))),
                name=name,
                server=server,
                note="(waits for a review)" if prefix[-1] == "pending" else "",
            )


def _says_rejected(one: JsonString) -> bool:
    return not one.is_key and one.path[2:] == ("status",) and one.value == "rejected"


def _tool_prefix(one: JsonString) -> Path | None:
    """The path of the tool that a string belongs to: of an answer to tools/list, or of pins."""
    path = one.path
    if len(path) > 1 and isinstance(path[0], int):
        return path[:1]
    if path[:1] == ("result",):
        inner = _tool_prefix_in(path[1:])
        return None if inner is None else ("result", *inner)
    return _tool_prefix_in(path)


def _tool_prefix_in(path: Path) -> Path | None:
    if path[:1] != ("tools",) or len(path) < 3:  # noqa: PLR2004 - a tool and something in it
        return None
    if isinstance(path[1], int):
        return path[:2]
    return path[:3] if path[2] in ("tool", "pending") and len(path) > 3 else None  # noqa: PLR2004


def _value(strings: list[JsonString], key: str) -> str:
    return next((one.value for one in strings if one.path == (key,) and not one.is_key), "")


def _texts(source: SourceFile, strings: list[JsonString], first: Path) -> Iterator[SubjectText]:
    """The strings of a tool: its name, what is written for people, then names and values."""
    name = [one for one in strings if one.path == first and not one.is_key]
    rest = [one for one in strings if one not in name]
    texts = [_text(source, one) for one in (*name, *rest)]
    yield from (one for one in texts[: len(name)])
    yield from (one for one in texts[len(name) :] if one.role == "prose")
    told: set[str] = set()
    for text in texts[len(name) :]:
        if text.role == "name" and text.value not in told and text.value not in _VOCABULARY:
            told.add(text.value)
            yield text


def _text(source: SourceFile, one: JsonString) -> SubjectText:
    value = one.value
    return SubjectText(value, source, one.start, role_of(value), one.raw)


def servers_in(source: SourceFile, strings: list[JsonString]) -> Iterator[Subject]:
    """Every server of a host's file: how it is started, or where it is."""
    groups: dict[str, list[SubjectText]] = {}
    for one in strings:
        inner = _inside_servers(one.path)
        if len(inner) == 1 and one.is_key:
            groups.setdefault(one.value, []).append(_text(source, one))
        elif len(inner) > 1 and inner[1] in _COMMAND and not one.is_key:
            groups.setdefault(str(inner[0]), []).append(_text(source, one))
    for name, texts in groups.items():
        yield Subject(f"server:{name}", "server", tuple(texts), server=name)


def _inside_servers(path: Path) -> Path:
    """The path from the name of a server on; editors put the whole under `mcp`."""
    at = 1 if path[:1] == ("mcp",) else 0
    return path[at + 1 :] if path[at : at + 1] and path[at] in _SERVER_KEYS else ()
