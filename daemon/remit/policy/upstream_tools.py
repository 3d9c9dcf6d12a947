"""The events that the tools of an upstream server become: their names, and what is said of them.

An event keeps its tool: the part of its name that stands for the tool is given out once, when the
tool is first seen, and never to another tool of that server. What a grant names therefore never
comes to mean something else because a server adds a tool.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from remit.model.event import EventSpec
from remit.model.limits import Effect
from remit.model.names import SEGMENT, EventName, parse_event_name
from remit.model.upstream import NAMESPACE, Upstream, UpstreamTool

LONGEST_SEGMENT = 120
_SEGMENT = re.compile(SEGMENT)
_NOT_IN_SEGMENT = re.compile(r"[^a-z0-9_.-]+")
_MARK, _LONG_MARK = 8, 40
_SUMMARY = 200
_TITLE = 100
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Signs without a shape that do not count as unprintable."""


def upstream_event(server: str, segment: str) -> EventName:
    """The event of a tool.

    Raises:
        InvalidNameError: the parts do not make one.
    """
    return parse_event_name(f"{NAMESPACE}:{server}:{segment}")


def segments(tools: Iterable[str], taken: Mapping[str, str]) -> dict[str, str]:
    """The part of the event's name for each tool; tools that have one already keep it.

    Args:
        tools: names of tools, in any order.
        taken: what was given out before, by tool.
    """
    new = sorted(set(tools) - taken.keys())
    wishes = {tool: _candidates(tool) for tool in new}
    claims = Counter(name for names in wishes.values() for name in names)
    used = set(taken.values())
    found = dict(taken)
    for tool, names in wishes.items():
        free = (name for name in names if claims[name] == 1 and name not in used)
        found[tool] = next(free, _hashed_segment(tool, _LONG_MARK))
    return found


def _candidates(tool: str) -> tuple[str, ...]:
    plain = tool.lower()
    fits = len(plain) <= LONGEST_SEGMENT and _SEGMENT.fullmatch(plain)
    return (plain, _hashed_segment(tool, _MARK)) if fits else (_hashed_segment(tool, _MARK),)


def _hashed_segment(tool: str, size: int) -> str:
    import hashlib  # noqa: PLC0415 - 3 ms, and few names need a fingerprint

    mark = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:size]
    text = (
        _NOT_IN_SEGMENT.sub("_", tool.lower()).lstrip("_.-")[: LONGEST_SEGMENT - size - 1] or "tool"
    )
    return f"{text}_{mark}"


def is_let_in(upstream: Upstream, tool: str) -> bool:
    """Tell whether the operator lets a tool in."""
    if any(_covers(pattern, tool) for pattern in upstream.exclude):
        return False
    return any(_covers(pattern, tool) for pattern in upstream.include)


def effect_of(upstream: Upstream, tool: UpstreamTool) -> Effect:
    """What a tool does: what the operator says, else what it says itself, else the worst."""
    return stated_effect(upstream, tool) or "destructive"


def stated_effect(upstream: Upstream, tool: UpstreamTool) -> Effect | None:
    """What the operator, or else the tool itself, says that it does; None when nobody does."""
    if tool.name in upstream.effects:
        return upstream.effects[tool.name]
    patterns = [one for one in upstream.effects if one.endswith("*") and _covers(one, tool.name)]
    if patterns:
        return upstream.effects[max(patterns, key=len)]
    if tool.annotations.get("readOnlyHint") is True:
        return "read"
    said: dict[object, Effect] = {False: "write", True: "destructive"}
    hint = tool.annotations.get("destructiveHint")
    return said[hint] if isinstance(hint, bool) else None


def upstream_spec(
    upstream: Upstream, tool: UpstreamTool, segment: str, *, vouched: bool = True
) -> EventSpec:
    """What is known about the event of a tool before anybody calls it.

    Args:
        upstream: its server.
        tool: what it says of itself.
        segment: the part of the event's name that stands for it.
        vouched: whether a person has looked at it.

    Raises:
        InvalidNameError: the name of the server or the segment does not make an event.
    """
    lines = (line for line in tool.description.splitlines() if line.strip())
    title = tool.title or tool.annotations.get("title", "")
    return EventSpec(
        name=upstream_event(upstream.name, segment),
        summary=visible(next(lines, ""), _SUMMARY),
        tool=tool.name,
        title=visible(title, _TITLE) if isinstance(title, str) else "",
        effect=effect_of(upstream, tool),
        effect_stated=stated_effect(upstream, tool) is not None,
        open_world=True,
        content=True,
        vouched=vouched,
        timeout=upstream.timeout,
        place=upstream.place,
    )


def visible(text: str, limit: int) -> str:
    """One line of what can be seen of a text by others."""
    line = " ".join("".join(map(_seen, _UNSEEN.sub("", text[: 4 * limit]))).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _seen(char: str) -> str:
    if unicodedata.category(char)[0] not in "CZ":
        return char
    return " " if char.isspace() else ""


def _covers(pattern: str, tool: str) -> bool:
    return tool.startswith(pattern[:-1]) if pattern.endswith("*") else tool == pattern
