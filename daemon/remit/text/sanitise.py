# ruff: noqa: RUF002 - the brackets are meant
"""Text by others, made harmless to look at: nothing unseen in it, no marker of a role.

Promises, each held by a property test:
- what comes out is NFKC and comes out the same when it goes in again;
- nothing in it is invisible or turns the direction of writing, except a joiner between two letters
  or pictures that need it;
- no role marker or role tag in it is live. It can still be read: `System:` becomes `[System]:` and
  `<system>` becomes `‹system›`.

Headings, tables, fences, entities and other scripts stay as they are.
"""

import re
import unicodedata
from typing import Literal

import msgspec

from remit.text.unicode import LINE_BREAKS, fold_mixed, unseen_spans

OPEN, CLOSE = "‹", "›"  # noqa: RUF001 - they look like brackets of a tag and are none

_ROLES = r"system|assistant|user|human|developer"
_SPEAKERS = (
    rf"(?:{_ROLES}"
    r"|(?:system|developer|user|assistant|human|ai)[ _-](?:message|prompt|instructions?|note))"
)
_TAGS = (
    rf"{_ROLES}|instructions?|prompt|tool_?calls?|tool_?(?:use|response|results?|output)"
    r"|function_?(?:calls?|results?|response)|start_of_turn|end_of_turn|invoke|thinking|sys|bos|eos|s"
)
_LONG_TAGS = (
    r"system[_-](?:prompt|message|reminder|note|instructions?)"
    r"|(?:antml|assistant|user|human)[:_-]\w+"
)
_TOKEN = re.compile(r"<(\|[^|<>\n]{1,64}\|)>")
"""The special tokens of most models, `<|im_start|>`."""
_TAG = re.compile(
    rf"<(\s{{0,4}}/?\s{{0,4}}(?:{_LONG_TAGS}|(?:{_TAGS})(?=[\s/>]|\Z))[^<>\n]{{0,200}})(>?)", re.I
)
_SYS = re.compile(r"<<(/?\s{0,4}SYS\s{0,4})>>", re.I)
_BRACKETED = re.compile(
    r"\[(\s{0,4}/?\s{0,4}(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\s{0,4})\]",
    re.I,
)
_DECORATION = r"[\s>*_~`#|\-+.\d)(]{0,40}"
_SPOKEN = re.compile(rf"^({_DECORATION})({_SPEAKERS})(?=[\s*_`~]{{0,8}}:)", re.I)
_HEADED = re.compile(
    r"^(\s{0,8}#{1,6}\s{0,8}[*_]{0,3})(instruction|response|input)(?=[\s*_]{0,8}:)", re.I
)
_HEADED_ALONE = re.compile(
    r"^(\s{0,8}#{2,6}\s{0,8})(instruction|human|assistant)(?=\s{0,8}\Z)", re.I
)
_KEY = re.compile(r"\s*(?:-\s+)?[a-z_-]+:(?:\s|\Z)")
"""A key of YAML in a fence: lower case, and nobody's marker."""
MAX_CHANGES = 200
_ROUNDS = 6
"""What NFKC makes may be unseen, and what then meets may compose; two rounds are the rule."""
_STACKED = 30
"""Marks on one letter; Unicode calls text with more of them not safe to stream."""
_WAS = 40
"""How much of what was there is told."""
Kind = Literal["invisible", "control", "direction", "compatibility", "confusable", "role_marker"]
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CLUSTER = re.compile(r"[\x00-\x7f](?![^\x00-\x7f])|[\x00-\x7f]?[^\x00-\x7f]+|[\x00-\x7f]")
"""An ASCII letter alone, or a run of others with the letter that a mark may sit on."""


class Neutral(msgspec.Struct, frozen=True):
    """A part of a line, and what is put in its place."""

    start: int
    end: int
    was: str
    now: str


def neutralised(line: str, *, in_fence: bool) -> list[Neutral]:
    """Every live marker of a line, in order, none overlapping another."""
    if "<" not in line and "[" not in line and ":" not in line and "#" not in line:
        return []
    found = [
        *_wrapped(_SYS, line, OPEN * 2, CLOSE * 2),
        *_wrapped(_TOKEN, line, OPEN, CLOSE),
        *(Neutral(m.start(), m.end(), m.group(), _closed(m)) for m in _TAG.finditer(line)),
        *_wrapped(_BRACKETED, line, "(", ")"),
    ]
    if not (in_fence and _KEY.match(line)):
        for pattern in (_SPOKEN, _HEADED, _HEADED_ALONE):
            if (match := pattern.match(line)) is not None:
                start, end = match.span(2)
                found.append(Neutral(start, end, match.group(2), f"[{match.group(2)}]"))
    return _apart(found)


def _wrapped(pattern: re.Pattern[str], line: str, opened: str, closed: str) -> list[Neutral]:
    return [
        Neutral(match.start(), match.end(), match.group(), f"{opened}{match.group(1)}{closed}")
        for match in pattern.finditer(line)
    ]


def _closed(match: re.Match[str]) -> str:
    return OPEN + match.group(1) + (CLOSE if match.group(2) else "")


def _apart(found: list[Neutral]) -> list[Neutral]:
    """In order; of two that overlap, the first."""
    apart: list[Neutral] = []
    for one in sorted(found, key=lambda neutral: (neutral.start, -neutral.end)):
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


class Replacement(msgspec.Struct, frozen=True):
    """One thing that was changed; the place is that in the text as it came."""

    kind: Kind
    line: int
    column: int
    was: str
    now: str


class SanitisedText(msgspec.Struct, frozen=True):
    """The text that may be shown, and what was changed to get it."""

    text: str
    changes: tuple[Replacement, ...] = ()
    count: int = 0
    """All changes; the list ends at a bound."""


def sanitise(text: str) -> SanitisedText:
    """Take out of `text` what cannot be seen, and its power from what looks like a role."""
    work = _Work()
    out = [
        work.line(number, line)
        for number, line in enumerate(LINE_BREAKS.sub("\n", text).split("\n"), 1)
    ]
    return SanitisedText("\n".join(out), tuple(work.changes), work.count)


class _Work:
    """One run: the changes so far, and whether a code fence is open."""

    def __init__(self) -> None:
        self.changes: list[Replacement] = []
        self.count = 0
        self._fence = ""

    def line(self, number: int, line: str) -> str:
        if line.isascii() and line.isprintable():
            plain, origin = line, None
        else:
            plain, origin = self._plain(number, line)
        for change in reversed(found := neutralised(plain, in_fence=bool(self._fence))):
            plain = plain[: change.start] + change.now + plain[change.end :]
        for change in found:
            self._tell("role_marker", number, _back(origin, change), change.was, change.now)
        self._mind_fence(plain)
        return plain

    def _plain(self, number: int, line: str) -> tuple[str, list[int]]:
        """The line without what cannot be seen, and where each of its characters came from."""
        kept, origin = self._seen(number, line, list(range(len(line))))
        for _ in range(_ROUNDS):
            before = kept
            kept, origin = self._normal(number, kept, origin)
            kept = self._folded(number, kept, origin)
            if kept == before:
                break
            kept, origin = self._seen(number, kept, origin)
        return kept, origin

    def _folded(self, number: int, line: str, origin: list[int]) -> str:
        def tell(at: int, was: str, now: str) -> None:
            self._tell("confusable", number, origin[at], was, now)

        return fold_mixed(line, tell)

    def _seen(self, number: int, line: str, origin: list[int]) -> tuple[str, list[int]]:
        parts: list[str] = []
        left: list[int] = []
        end = 0
        for start, stop, kind, now in unseen_spans(line):
            parts += (line[end:start], now)
            left += origin[end:start] + [origin[start]] * len(now)
            self._tell(kind, number, origin[start], line[start:stop], now)
            end = stop
        return "".join(parts) + line[end:], left + origin[end:]

    def _normal(self, number: int, line: str, origin: list[int]) -> tuple[str, list[int]]:
        if not line.isascii():
            line, origin = self._unstacked(number, line, origin)
        if unicodedata.is_normalized("NFKC", line):
            return line, origin
        parts: list[str] = []
        left: list[int] = []
        for match in _CLUSTER.finditer(line):
            was = match.group()
            now = unicodedata.normalize("NFKC", was)
            if now != was:
                self._tell("compatibility", number, origin[match.start()], was, now)
            parts.append(now)
            left += [origin[match.start()]] * len(now)
        whole = unicodedata.normalize("NFKC", line)
        joined = "".join(parts)
        # A cluster can join the next one only in rare scripts; then the place is the line's start.
        return (joined, left) if joined == whole else (whole, [origin[0]] * len(whole))

    def _unstacked(self, number: int, line: str, origin: list[int]) -> tuple[str, list[int]]:
        """Leave out marks that nobody could read: sorting a long stack takes its square in time."""
        run, kept = 0, []
        for at, char in enumerate(line):
            run = run + 1 if unicodedata.combining(char) else 0
            if run <= _STACKED:
                kept.append(at)
        if len(kept) == len(line):
            return line, origin
        self._tell("invisible", number, origin[0], f"{len(line) - len(kept)} stacked marks", "")
        return "".join(line[at] for at in kept), [origin[at] for at in kept]

    def _tell(self, kind: Kind, number: int, at: int, was: str, now: str) -> None:
        self.count += 1
        if len(self.changes) < MAX_CHANGES:
            self.changes.append(Replacement(kind, number, at + 1, _visible(was), now[:_WAS]))

    def _mind_fence(self, line: str) -> None:
        match = _FENCE.match(line)
        if match is None:
            return
        if not self._fence:
            self._fence = match.group(1)
        elif match.group(1).startswith(self._fence) and not line[match.end() :].strip():
            self._fence = ""


def _back(origin: list[int] | None, change: Neutral) -> int:
    return change.start if origin is None or change.start >= len(origin) else origin[change.start]


def _visible(text: str) -> str:
    """What was there, with a number for what cannot be seen."""
    shown = "".join(
        char
        if char.isprintable() and not unicodedata.category(char).startswith("M")
        else f"U+{ord(char):04X} "
        for char in text[:_WAS]
    )
    return shown.strip()


def cleaned_text(text: str) -> str:
    """The text without what cannot be seen, and with no live marker of a role."""
    return text if text.isascii() and text.isalnum() else sanitise(text).text
