"""What is known and pinned about each upstream server: `<home>/upstreams/NAME.json`.

The file is written by the daemon and read by commands beside it, so that both know the events of
upstream tools without starting a server, and can tell why a tool is no event now. A file that is
damaged is trusted in nothing.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from remit.config.settings.home import check_file
from remit.errors import InvalidNameError, Place, Problem
from remit.model.names import EventName, did_you_mean
from remit.model.upstream import Upstream, UpstreamTool, server_of
from remit.policy.queries import Obstacle
from remit.policy.upstream_tools import is_let_in, upstream_event

MAX_FILE_BYTES = 64 << 20
MAX_TOOLS = 10_000
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700
FIRST_USE = "on_first_use"
"""The rule that trusts what is new, and who decided where it did."""
Status = Literal["trusted", "pending", "rejected"]


class Pin(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The decision about one tool, and the definition that waits for one."""

    segment: str
    """The part of its event's name that stands for it; it never changes."""
    status: Status
    tool: UpstreamTool | None = None
    """What is trusted; it is served only while the status says so as well."""
    fingerprint: str = ""
    origin: str = ""
    """Where it came from when it was trusted; it is in the fingerprint."""
    pending: UpstreamTool | None = None
    """What waits, or was rejected."""
    pending_fingerprint: str = ""
    reason: str = ""
    """Why it waits."""
    first_seen: float = 0.0
    waiting_since: float = 0.0
    """When it was held back; 0: since it was first seen."""
    decided_by: str = ""
    decided_at: float = 0.0
    note: str = ""
    gone: bool = False
    """The server does not list it any more."""

    @property
    def is_vouched(self) -> bool:
        """Tell whether a person has trusted it, and not only the rule for what is new."""
        return self.status == "trusted" and self.decided_by != FIRST_USE

    def is_served(self, origin: str) -> bool:
        """Tell whether its event can be called, when the server is reached at `origin`.

        INVARIANT: what is served has the fingerprint that was trusted, and the origin is in it.
        """
        if self.status != "trusted" or self.gone or self.tool is None:
            return False
        return self.tool.fingerprint(origin) == self.fingerprint


class KnownServer(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """All that is known about one server."""

    name: str
    origin: str = ""
    """Where it was last listed."""
    protocol: str = ""
    server_info: Mapping[str, str] = {}
    listed_at: float = 0.0
    tools: Mapping[str, Pin] = {}
    version: Literal[1] = 1


class Pins(msgspec.Struct, frozen=True):
    """The pins of all servers, and the problems of their files."""

    known: Mapping[str, KnownServer] = {}
    problems: tuple[Problem, ...] = ()


def served_tools(upstream: Upstream, known: KnownServer) -> dict[EventName, UpstreamTool]:
    """The tools of a server that are served, by event; what the operator keeps out is not."""
    return {
        upstream_event(upstream.name, pin.segment): pin.tool
        for name, pin in sorted(known.tools.items())
        if pin.tool is not None and is_let_in(upstream, name) and pin.is_served(upstream.origin)
    }


def read_pins(folder: Path, names: Iterable[str]) -> Pins:
    """What is known about these servers; a file that cannot be read counts as absent."""
    known: dict[str, KnownServer] = {}
    problems = []
    for name in sorted(set(names)):
        path = folder / f"{name}.json"
        try:
            found = _read(path, name)
        except (OSError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            why = error.strerror if isinstance(error, OSError) else str(error)
            hint = "its tools are not trusted; move it away and review them: remit review list"
            problems.append(Problem(Place(str(path)), "damaged_pins", f"damaged: {why}", hint))
            continue
        if found is not None:
            known[name] = found
    return Pins(known, tuple(problems))


def _read(path: Path, name: str) -> KnownServer | None:
    try:
        if not path.is_file() and path.exists():  # reading a pipe would wait for ever
            raise ValueError("it is not a plain file")
        check_file(path)
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(raw) > MAX_FILE_BYTES:
        raise ValueError(f"it has more than {MAX_FILE_BYTES:,} bytes")
    known = msgspec.json.decode(raw, type=KnownServer)
    if known.name != name:
        raise ValueError(f"it is about {known.name!r}")
    _check(known)
    return known


def _check(known: KnownServer) -> None:
    given = [pin.segment for pin in known.tools.values()]
    if len(given) > MAX_TOOLS:
        raise ValueError(f"it has more than {MAX_TOOLS:,} tools")
    if len(set(given)) != len(given):
        raise ValueError("two tools share an event")
    for name, pin in known.tools.items():
        try:
            upstream_event(known.name, pin.segment)
        except InvalidNameError as error:
            raise ValueError(f"{pin.segment!r} is no part of an event's name") from error
        if any(tool.name != name for tool in (pin.tool, pin.pending) if tool is not None):
            raise ValueError(f"the tool {name!r} has another name inside")


def write_pins(folder: Path, known: KnownServer) -> None:
    """Keep what is known about a server: all of it or nothing, and on disk when this returns.

    Raises:
        OSError: it cannot be written; what stood there before still does.
        ValueError: there is too much of it.
    """
    raw = msgspec.json.encode(known)
    if len(raw) > MAX_FILE_BYTES or len(known.tools) > MAX_TOOLS:
        raise ValueError(f"more is known about {known.name!r} than is kept")
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    beside = folder / f".{known.name}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _FILE_MODE)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(raw)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(folder / f"{known.name}.json")
    _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


Servers = Mapping[str, tuple[Upstream, KnownServer | None]]
"""Each server that is written down, with what is known about it."""


def upstream_obstacle(servers: Servers, event: str) -> Obstacle | None:
    """What keeps an upstream tool from being called; None for what is no name of one."""
    name = server_of(event)
    if not name:
        return None
    if name not in servers:
        hint = did_you_mean(name, servers) or "remit upstream list"
        return Obstacle("unknown_server", f"there is no upstream server {name!r}", hint)
    upstream, known = servers[name]
    pins = {} if known is None else known.tools
    for tool, pin in pins.items():
        if upstream_event(name, pin.segment) == event:
            return _of_tool(upstream, tool, pin)
    message = f"the upstream server {name!r} offers no such tool"
    if known is None or not known.listed_at:
        message = f"nobody has asked the upstream server {name!r} for its tools yet"
    return Obstacle("not_offered", message, f"remit upstream check {name}")


def _of_tool(upstream: Upstream, tool: str, pin: Pin) -> Obstacle:
    named = f"the tool {tool!r} of {upstream.name!r}"
    review = f"remit review approve 'tool:{upstream.name}/{tool}'"
    if not is_let_in(upstream, tool):
        hint = "change 'allow' or 'deny' there"
        return Obstacle("kept_out", f"{named} is kept out by upstreams.yaml", hint)
    if pin.gone:
        message = f"{named} is not offered any more"
        return Obstacle("gone", message, f"remit upstream check {upstream.name}")
    if pin.status == "rejected":
        return Obstacle("rejected", f"{named} was rejected by an operator", review)
    why = f": {pin.reason}" if pin.reason else ""
    hint = f"look at it with: remit review list --kind tool; then {review}"
    return Obstacle("quarantine", f"{named} is in quarantine{why}", hint)
