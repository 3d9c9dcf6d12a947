"""Markers by which a prompt says who speaks, found so that they can be made harmless."""

import re

import msgspec

OPEN, CLOSE = "‹", "›"  # noqa: RUF001 - they look like brackets of a tag and are none


class Neutral(msgspec.Struct, frozen=True):
    """A part of a line, and what is put in its place."""

    start: int
    end: int
    was: str
    now: str


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
