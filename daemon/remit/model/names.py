"""Names of events, patterns of them, entries of tool lists, and the name that was probably meant.

A pattern is an event name, or a prefix that ends in `*` and covers every name that starts with it.
`*` stands nowhere else, so an operator can read a pattern aloud and know what it grants. An entry
of a tool list is an event pattern when it has a colon, else a model tool.
"""

import re
from collections.abc import Iterable
from typing import NewType, Self

import msgspec

from remit.errors import InvalidNameError, InvalidPatternError, Place
from remit.model.schema import NAME_LIMIT

EventName = NewType("EventName", str)

SEGMENT = r"[a-z0-9][a-z0-9_.-]*"
_NAME = re.compile(rf"[a-z][a-z0-9_]*(:{SEGMENT})+")
_PATTERN = re.compile(rf"\*|[a-z][a-z0-9_]*(:{SEGMENT})*:({SEGMENT}|({SEGMENT})?\*)")
_MODEL_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_FEW = 12
_CANDIDATES = 64
_SHARE = 3
"""One letter in so many may differ."""

KNOWN_MODEL_TOOLS = frozenset(
    [
        "Agent",
        "AskUserQuestion",
        "Bash",
        "BashOutput",
        "Edit",
        "EnterPlanMode",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "KillShell",
        "LS",
        "ListMcpResources",
        "MultiEdit",
        "NotebookEdit",
        "NotebookRead",
        "Read",
        "ReadMcpResource",
        "Skill",
        "SlashCommand",
        "Task",
        "TodoRead",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
        "Write",
    ]
)
"""Host-side tools that people name most; another name is accepted with a warning."""


def parse_event_name(text: str) -> EventName:
    """Accept `text` as an event name.

    Raises:
        InvalidNameError: `text` is not two or more lowercase segments joined by colons.
    """
    if len(text) > NAME_LIMIT or not _NAME.fullmatch(text):
        raise InvalidNameError(text)
    return EventName(text)


class EventPattern(msgspec.Struct, frozen=True):
    """A pattern that has been parsed; `EventPattern.parse` is the way to get one."""

    prefix: str
    exact: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pattern as operators write it.

        Raises:
            InvalidPatternError: `text` is neither an event name nor a prefix that ends in `*`.
        """
        if len(text) > NAME_LIMIT or not _PATTERN.fullmatch(text):
            raise InvalidPatternError(text)
        return cls(prefix=text.removesuffix("*"), exact=not text.endswith("*"))

    @property
    def is_everything(self) -> bool:
        """Tell whether this is the bare `*`."""
        return not self.exact and not self.prefix

    def covers(self, name: str) -> bool:
        """Tell whether this pattern covers `name`."""
        return name == self.prefix if self.exact else name.startswith(self.prefix)

    def overlap(self, other: "EventPattern") -> "EventPattern | None":
        """The pattern of the names that both cover; None when there can be no such name."""
        wide, narrow = sorted((self, other), key=lambda p: (len(p.prefix), p.exact))
        return narrow if wide.covers(narrow.prefix) else None

    def __str__(self) -> str:
        return self.prefix if self.exact else f"{self.prefix}*"


class Ref(msgspec.Struct, frozen=True):
    """A name that refers to something else, with the place where it was written."""

    name: str
    place: Place


class PlacedPattern(msgspec.Struct, frozen=True):
    """An event pattern with the place where it was written."""

    pattern: EventPattern
    place: Place

    def __str__(self) -> str:
        return str(self.pattern)


class ToolEntry(msgspec.Struct, frozen=True):
    """An entry as written, with its place. Exactly one of `pattern` and `model_tool` is set."""

    text: str
    place: Place
    pattern: EventPattern | None = None
    model_tool: str | None = None

    @classmethod
    def parse(cls, text: str, place: Place) -> Self:
        """Read an entry of a tool list.

        Raises:
            InvalidPatternError: the text is neither a pattern nor a plain tool name.
        """
        if ":" in text or text == "*":
            return cls(text, place, pattern=EventPattern.parse(text))
        if not _MODEL_TOOL.fullmatch(text):
            raise InvalidPatternError(text)
        return cls(text, place, model_tool=text)


def nearest(word: str, known: Iterable[str], *, count: int = 1) -> list[str]:
    """The known words that are near to `word`, best first. It serves hints and nothing else.

    A word is near when few letters differ: at most a third of them, in each part of a name by
    itself, so that a namespace in common makes nothing near. Near as well are the same words in
    another order, and an event by its last part.
    """
    import difflib  # noqa: PLC0415 - 3 ms that only a mistake has to pay

    found = difflib.get_close_matches(word, sorted(known), n=_CANDIDATES, cutoff=0.6)
    return [one for one in found if is_near(word, one)][:count]


def is_near(word: str, known: str) -> bool:
    """Tell whether somebody who wrote `word` may have meant `known`."""
    word, known = word.casefold(), known.casefold()
    if known.endswith(f":{word}") or _words(word) == _words(known):
        return True
    parts, others = word.split(":"), known.split(":")
    if len(parts) != len(others):
        return _is_similar(word, known)
    return all(_is_similar(one, other) for one, other in zip(parts, others, strict=True))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint with the nearest known word, or the list of words when it is short."""
    choices = sorted(known)
    near = nearest(word, choices)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(choices)}" if 0 < len(choices) <= _FEW else ""


def _words(text: str) -> list[str]:
    return sorted(re.split(r"[^0-9a-z]+", text))


def _is_similar(one: str, other: str) -> bool:
    most = max(len(one), len(other), _SHARE) // _SHARE
    return abs(len(one) - len(other)) <= most and _distance(one, other) <= most


def _distance(one: str, other: str) -> int:
    """How many letters to add, leave out, change or swap with the next one."""
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        before, last, row = row, before, [at]
        for to, wanted in enumerate(other, start=1):
            cost = min(before[to], row[to - 1]) + 1
            cost = min(cost, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
    return row[-1]
