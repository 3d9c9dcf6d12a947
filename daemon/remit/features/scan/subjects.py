"""What is put before a model, cut into texts that know where they stand."""

import re
from bisect import bisect_right
from typing import Literal

import msgspec

from remit.config.strict.json import raw_offset
from remit.model.place import Place

Kind = Literal["tool", "skill", "card", "capability", "composition", "server", "file"]
Role = Literal["name", "prose"]

_LINE = re.compile("\n")
_SPACE = re.compile(r"\s")
_NEEDLES = (48, 16, 6)
_AROUND = 4_000


_MAX_NAME = 200


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


class Text(msgspec.Struct, frozen=True, eq=False):
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
    texts: tuple[Text, ...]
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
