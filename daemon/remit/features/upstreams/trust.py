"""Which upstream tools are trusted: when a server lists them, and when somebody decides.

The same pins, list and judgement always give the same pins. A tool is trusted by its fingerprint;
one that has another is not trusted, whatever was decided before, and one that goes back to what was
trusted is trusted again. `Judge` says which tools may be trusted unseen, and which never.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from remit.features.upstreams.client.state import Listing
from remit.features.upstreams.pins import FIRST_USE, MAX_TOOLS, KnownServer, Pin, Status
from remit.model.descriptor import CALL_TOOL, META_TOOL
from remit.model.event import Universe
from remit.model.upstream import Upstream, UpstreamTool, server_of
from remit.policy.tool_names import tool_names
from remit.policy.upstream_tools import is_let_in, segments, visible
from remit.text.unicode import look_of

NEW = "it is new"
CHANGED = "it has changed since it was trusted"
MOVED = "its server is reached elsewhere than when it was trusted"
CHANGED_UNSEEN = "it has changed since it was first seen"
SHARED = "its name is that of a tool of remit"
"""Such a tool is served, and held back from whoever holds both; see `policy.tool_names`."""
_REASONS = 1_000
MAX_DEFINITION = 262_144
"""Bytes of what a tool says about itself."""
_RESERVED = frozenset({META_TOOL, CALL_TOOL})
"""Every host may list these."""
_LONG_FORM = "mcp__"
"""How the name begins that a tool gets with the name of its server."""
_LONGEST_NAME = 128
_MOST_RULES = 3
_MOST_TEXT = 200_000


def after_listing(
    known: KnownServer, upstream: Upstream, listing: Listing, judge: "Judge", now: float
) -> KnownServer:
    """The pins after a server has listed its tools."""
    tools = {tool.name: tool for tool in listing.tools if is_let_in(upstream, tool.name)}
    room = MAX_TOOLS - len(known.tools)
    new = sorted(tools.keys() - known.tools.keys())[: max(0, room)]
    given = {name: pin.segment for name, pin in known.tools.items()}
    names = segments(new, given)
    pins: dict[str, Pin] = {}
    for name, pin in known.tools.items():
        if name in tools:
            pins[name] = _seen_again(pin, tools[name], upstream, judge, now)
        elif not is_let_in(upstream, name):
            pins[name] = pin
        elif pin.tool is not None or pin.status == "rejected":
            pins[name] = msgspec.structs.replace(pin, gone=True)
        # What was never decided about and is gone is forgotten: its event never was in force.
    for name in new:
        pins[name] = _first_seen(names[name], tools[name], upstream, judge, now)
    info = {"name": listing.server_name, "version": listing.server_version}
    return KnownServer(
        name=known.name,
        origin=upstream.origin,
        protocol=listing.protocol,
        server_info={key: value for key, value in info.items() if value},
        listed_at=now,
        tools=pins,
    )


def _first_seen(
    segment: str, tool: UpstreamTool, upstream: Upstream, judge: "Judge", now: float
) -> Pin:
    doubts = judge.doubts(tool)
    print_ = fingerprint_of(tool, upstream.origin)
    if upstream.trust == FIRST_USE and not doubts:
        return Pin(
            segment=segment,
            status="trusted",
            tool=tool,
            fingerprint=print_,
            origin=upstream.origin,
            first_seen=now,
            decided_by=FIRST_USE,
            decided_at=now,
        )
    return Pin(
        segment=segment,
        status="pending",
        pending=kept(tool, judge),
        pending_fingerprint=print_,
        reason=_joined(doubts or [NEW]),
        first_seen=now,
    )


def _seen_again(
    pin: Pin, tool: UpstreamTool, upstream: Upstream, judge: "Judge", now: float
) -> Pin:
    print_ = fingerprint_of(tool, upstream.origin)
    if pin.tool is not None and print_ == pin.fingerprint:
        return msgspec.structs.replace(
            pin,
            status="trusted",
            tool=tool,  # the same, unless somebody has edited the file of pins
            pending=None,
            pending_fingerprint="",
            reason="",
            gone=False,
        )
    if pin.status != "trusted" and print_ == pin.pending_fingerprint:
        # The operator may trust it by now.
        if pin.status == "pending" and pin.reason in (NEW, SHARED):
            return _first_seen(pin.segment, tool, upstream, judge, pin.first_seen or now)
        return msgspec.structs.replace(pin, gone=False)
    why = CHANGED_UNSEEN
    if pin.tool is not None:
        why = MOVED if pin.tool == tool else CHANGED
    return msgspec.structs.replace(
        pin,
        status="pending",
        pending=kept(tool, judge),
        pending_fingerprint=print_,
        reason=_joined([why, *judge.doubts(tool)]),
        note="",
        gone=False,
        waiting_since=now,
    )


def decided(pin: Pin, status: Status, *, origin: str, by: str, note: str, now: float) -> Pin:
    """The pin after somebody decided about what it shows for review.

    What waits is meant, and when nothing waits, what is trusted: a rejection takes trust back.
    """
    tool, print_ = shown_of(pin)
    stamp = {"decided_by": by, "decided_at": now, "note": note}
    if status == "trusted":
        return Pin(
            segment=pin.segment,
            status="trusted",
            tool=tool,
            fingerprint=print_,
            origin=origin,
            first_seen=pin.first_seen,
            gone=pin.gone,
            decided_by=by,
            decided_at=now,
            note=note,
        )
    if pin.status == "trusted":
        pin = msgspec.structs.replace(pin, tool=None, fingerprint="", origin="")
    return msgspec.structs.replace(
        pin, status="rejected", pending=tool, pending_fingerprint=print_, reason="", **stamp
    )


def shown_of(pin: Pin) -> tuple[UpstreamTool | None, str]:
    """The definition that a review is about, and its fingerprint."""
    if pin.status == "trusted":
        return pin.tool, pin.fingerprint
    return pin.pending, pin.pending_fingerprint


def kept(tool: UpstreamTool, judge: "Judge") -> UpstreamTool | None:
    """What is kept of a tool: nothing of one that can never be served."""
    return None if judge.refusal(tool) else tool


def fingerprint_of(tool: UpstreamTool, origin: str) -> str:
    """The fingerprint; that of nothing for what cannot be written as JSON."""
    try:
        return tool.fingerprint(origin)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return ""


def _joined(reasons: Iterable[str]) -> str:
    return "; ".join(reasons)[:_REASONS]


def unwritten(before: KnownServer, after: KnownServer) -> KnownServer:
    """The pins when they cannot be kept: nothing is trusted that was not trusted before."""
    pins = dict(after.tools)
    for name, pin in after.tools.items():
        old = before.tools.get(name)
        had = old is not None and old.status == "trusted" and old.fingerprint == pin.fingerprint
        if pin.status == "trusted" and not had:
            pins[name] = Pin(
                segment=pin.segment,
                status="pending",
                pending=pin.tool,
                pending_fingerprint=pin.fingerprint,
                reason=NEW,
                first_seen=pin.first_seen,
            )
    return msgspec.structs.replace(after, tools=pins)


class Neighbours(msgspec.Struct, frozen=True):
    """The tools that others have, which a new one must not pass for."""

    own: frozenset[str]
    """Names of the tools of events that are served here."""
    others: Mapping[str, frozenset[str]] = {}
    """Names of the tools of other upstream servers."""


def neighbours_of(server: str, universe: Universe, known: Mapping[str, KnownServer]) -> Neighbours:
    """The tools that those of a server must not pass for: ours, and what other servers have.

    A tool that was rejected or is gone is nobody's neighbour: there is nothing to pass for.
    """
    names = tool_names(universe)
    own = {
        name
        for event, spec in universe.specs.items()
        if not server_of(event) and not spec.pushed
        for name in (spec.tool or event.replace(":", "_"), names.get(event, ""))
        if name
    }
    others = {
        one.name: frozenset(
            name for name, pin in one.tools.items() if pin.status != "rejected" and not pin.gone
        )
        for one in known.values()
        if one.name != server
    }
    return Neighbours(frozenset(own), others)


class Judge:
    """Looks at the tools of one server."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._own = neighbours.own | _RESERVED
        self._looks: dict[str, dict[str, str]] = {}
        # In pairs: a server may be called remit too.
        for owner, names in [("remit", self._own), *neighbours.others.items()]:
            for name in names:
                self._looks.setdefault(look_of(name), {}).setdefault(name, owner)

    @staticmethod
    def refusal(tool: UpstreamTool) -> str:
        """Why it can never be served as it is; empty when it can."""
        if not tool.name or len(tool.name) > _LONGEST_NAME:
            return f"its name has {len(tool.name)} characters"
        size = definition_size(tool)
        if size is None:
            return "it cannot be written as JSON"
        if size > MAX_DEFINITION:
            return f"its definition has {size:,} bytes, {MAX_DEFINITION:,} are the limit"
        return ""

    def doubts(self, tool: UpstreamTool) -> list[str]:
        """Why a person should look at it first; none when nothing is suspicious."""
        refused = self.refusal(tool)
        if refused:
            return [refused]
        unseen = visible(tool.name, _LONGEST_NAME) != tool.name
        hidden = ["its name has characters that cannot be seen"] if unseen else []
        return [*hidden, *self._lookalikes(tool.name), *_suspicions(tool)]

    def _lookalikes(self, name: str) -> Iterator[str]:
        if name in _RESERVED:
            yield SHARED
            return
        if name in self._own:  # it is held back from whoever holds both
            return
        if name.lower().replace("-", "_").startswith(_LONG_FORM):
            yield "its name is written as if it were a tool of another server"
            return
        found = self._looks.get(look_of(name), {})
        # The same name elsewhere is a plain conflict: both are shown with the name of their server.
        for other, owner in sorted(found.items()):
            if other != name:
                yield f"its name looks like {other!r} of {owner}"
                return


def _suspicions(tool: UpstreamTool) -> Iterator[str]:
    from remit.features.scan.scanner import scan  # noqa: PLC0415 - its rules: only with a server

    report = scan("\n".join(texts_of(tool))[:_MOST_TEXT])
    if report.suspicious:
        rules = dict.fromkeys(
            finding.rule for finding in sorted(report.findings, key=lambda one: -one.weight)
        )
        yield f"suspicious to {report.score} of 100: {', '.join(list(rules)[:_MOST_RULES])}"


def texts_of(tool: UpstreamTool) -> Iterator[str]:
    """Everything that a model would read of a tool."""
    yield tool.name
    yield tool.title
    yield tool.description
    yield from _strings((tool.input_schema, tool.output_schema, tool.annotations))


def _strings(parts: Iterable[Any]) -> Iterator[str]:
    waiting = list(parts)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [one for pair in reversed(value.items()) for one in reversed(pair)]
        elif isinstance(value, list | tuple):
            waiting += reversed(value)


def definition_size(tool: UpstreamTool) -> int | None:
    """Bytes of a definition; None when it cannot be written as JSON."""
    try:
        return len(msgspec.json.encode(tool))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
