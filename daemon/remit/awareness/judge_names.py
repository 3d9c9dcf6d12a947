"""Tools held against each other: names that are taken or look alike, and texts that steer others.

Only tools of different servers are compared: what one server says about its own tools is its own.
"""

import re
from collections.abc import Iterable, Iterator

from remit.awareness.alarm import Alarm, Level
from remit.awareness.confusables import look_of
from remit.awareness.described import Subject, Text
from remit.awareness.judge_text import alarm

MAX_TOLD = 20
"""Pairs that are told of one name."""
_SEPARATORS = re.compile(r"[^0-9a-z]+")
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_DISTINCT = re.compile(r"[_-]|[a-z][A-Z]")
"""What tells a name from a word of the language."""
_SHORTEST = 6
_AROUND = 400
_SENTENCE_END = re.compile(r"[.!?](?:\s|\Z)|\n\s*\n")
_STEERS = re.compile(
    r"\b(?:always|must|never|instead|before|after|whenever|when (?:you )?(?:call|us)\w*"
    r"|first|do not|don't|should|ignore|disregard|replaces?|deprecated|only|rather than"
    r"|every time)\b",
    re.IGNORECASE,
)


def judge_names(subjects: Iterable[Subject]) -> list[Alarm]:
    """Everything suspicious about how tools stand to each other."""
    tools = [one for one in subjects if one.kind == "tool" and one.name]
    alarms = [*_same_names(tools), *_lookalikes(tools), *_not_ascii(tools)]
    owners: dict[str, set[str]] = {}
    for tool in tools:
        owners.setdefault(tool.name, set()).add(tool.server)
    known = {name for name in owners if len(name) >= _SHORTEST and _DISTINCT.search(name)}
    for tool in tools:
        alarms += _mentions(tool, known, owners)
    return alarms


def _not_ascii(tools: list[Subject]) -> Iterator[Alarm]:
    for tool in tools:
        if not tool.name.isascii():
            yield _about_name(tool, "name.not_ascii", "warning")


def _same_names(tools: list[Subject]) -> Iterator[Alarm]:
    by_name: dict[str, list[Subject]] = {}
    for tool in tools:
        by_name.setdefault(tool.name, []).append(tool)
    for group in by_name.values():
        first, told = group[0], _prose(group[0])
        others = [one for one in group[1:] if one.server != first.server and _prose(one) != told]
        for other in others[:MAX_TOLD]:
            yield _about_name(other, "tools.same_name", "note", f"({first.id})")


def _prose(tool: Subject) -> tuple[str, ...]:
    return tuple(text.value for text in tool.texts if text.role == "prose")


def _lookalikes(tools: list[Subject]) -> Iterator[Alarm]:
    by_look: dict[str, dict[str, Subject]] = {}
    for tool in tools:
        by_look.setdefault(look_of(tool.name), {}).setdefault(tool.name, tool)
    for group in by_look.values():
        # The plainest name is the one that the others look like.
        ordered = sorted(group.values(), key=lambda one: (not one.name.isascii(), one.server))
        first = ordered[0]
        for other in ordered[1 : MAX_TOLD + 1]:
            level = _alike(first.name, other.name)
            if level != "error" and first.server == other.server:
                continue
            yield _about_name(other, "tools.lookalike_name", level, f"({first.id})")


def _alike(one: str, other: str) -> Level:
    """Other letters deceive; another way to join words is a habit."""
    if not (one.isascii() and other.isascii()):
        return "error"
    plain = {_SEPARATORS.sub("", name.lower()) for name in (one, other)}
    return "note" if len(plain) == 1 else "warning"


def _mentions(tool: Subject, known: set[str], owners: dict[str, set[str]]) -> Iterator[Alarm]:
    told: set[str] = set()
    for text in tool.texts:
        if text.role == "name":
            continue
        for match in _WORD.finditer(text.value):
            name = match.group()
            if name in told or name not in known or tool.server in owners[name]:
                continue
            told.add(name)
            sentence, start = _sentence(text.value, match.start())
            steers = _STEERS.search(sentence) is not None
            yield alarm(
                tool,
                text,
                start,
                "tools.steers_other" if steers else "tools.names_other",
                severity="warning" if steers else "note",
                excerpt=sentence,
                more=f"({name} of {', '.join(sorted(map(_whose, owners[name])))})",
            )


def _whose(server: str) -> str:
    return server or "remit"


def _sentence(text: str, at: int) -> tuple[str, int]:
    """The sentence around an offset, as far as it is worth reading, and where it starts."""
    start, stop = max(0, at - _AROUND), min(len(text), at + _AROUND)
    for end in _SENTENCE_END.finditer(text, start, stop):
        if end.start() >= at:
            stop = end.start() + 1
            break
        start = end.end()
    return text[start:stop], start


def _about_name(tool: Subject, rule: str, severity: Level, more: str = "") -> Alarm:
    text: Text = next((one for one in tool.texts if one.role == "name"), tool.texts[0])
    return alarm(tool, text, 0, rule, severity=severity, excerpt=tool.name, more=more)
