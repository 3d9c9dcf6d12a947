"""What becomes of the pins of a server when it lists its tools, and when somebody decides.

Pure: the same pins, list and judgement always give the same pins. A tool is trusted by its
fingerprint; one that has another is not trusted, whatever was decided before, and one that goes
back to what was trusted is trusted again.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from remit.features.upstreams.client.types import Listing
from remit.features.upstreams.pins import FIRST_USE, MAX_TOOLS, KnownServer, Pin, Status
from remit.model.upstream import Upstream, UpstreamTool
from remit.policy.tool_names import is_let_in, segments, server_of, upstream_event

NEW = "it is new"
CHANGED = "it has changed since it was trusted"
MOVED = "its server is reached elsewhere than when it was trusted"
CHANGED_UNSEEN = "it has changed since it was first seen"
SHARED = "its name is that of a tool of remit"
"""Such a tool is served, and held back from whoever holds both; see `policy.toolnames`."""
_REASONS = 1_000


class Looks(Protocol):
    """Who says whether a tool can be trusted."""

    def refusal(self, tool: UpstreamTool) -> str:
        """Why it can never be served; empty when it can."""

    def doubts(self, tool: UpstreamTool) -> list[str]:
        """Why a person should look at it first."""


def after_listing(
    known: KnownServer, upstream: Upstream, listing: Listing, judge: Looks, now: float
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
    segment: str, tool: UpstreamTool, upstream: Upstream, judge: Looks, now: float
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


def _seen_again(pin: Pin, tool: UpstreamTool, upstream: Upstream, judge: Looks, now: float) -> Pin:
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


class Held(msgspec.Struct, frozen=True):
    """Why an event of an upstream tool is not served."""

    server: str
    tool: str
    status: Status
    since: float
    """When that began, in seconds since 1970."""
    reason: str


def held_for_review(known: Mapping[str, KnownServer], event: str) -> Held | None:
    """What keeps the tool of an `mcp:` event from being served; None when it is no such event.

    For whoever explains a decision. Only somebody who sees everything may be told.

    Args:
        known: what is known about each server, by name.
        event: the event in question; it need not be in force.
    """
    server = known.get(server_of(event))
    if server is None:
        return None
    for tool, pin in server.tools.items():
        if upstream_event(server.name, pin.segment) == event and pin.status != "trusted":
            since = pin.waiting_since or pin.first_seen
            if pin.status == "rejected":
                return Held(server.name, tool, pin.status, pin.decided_at, pin.note)
            return Held(server.name, tool, pin.status, since, pin.reason)
    return None


def shown_of(pin: Pin) -> tuple[UpstreamTool | None, str]:
    """The definition that a review is about, and its fingerprint."""
    if pin.status == "trusted":
        return pin.tool, pin.fingerprint
    return pin.pending, pin.pending_fingerprint


def kept(tool: UpstreamTool, judge: Looks) -> UpstreamTool | None:
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
