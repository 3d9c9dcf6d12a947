"""Reviews of upstream tools: what waits, and deciding about exactly what somebody was shown.

A decision is about a fingerprint. Whoever decides names it, or is held to what was last shown: a
server that changes a tool between the look and the yes gets no yes. Reviews are for those who see
everything: whoever decides what every agent may be shown must not see only its own part.
"""

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio
import msgspec

from remit.errors import ConflictError, InvalidDataError, NotFoundError, StoreError
from remit.features.reviews.desk import ReviewDecision, ReviewItems, ReviewKind, ReviewQuery
from remit.features.upstreams.pins import Pin, Status
from remit.features.upstreams.trust import NEW, SHARED, decided, fingerprint_of, shown_of
from remit.features.upstreams.views import review_view, seen
from remit.kernel.audit.log import AuditLog
from remit.kernel.dispatch.context import Context
from remit.kernel.store.records import ReviewStatus
from remit.model.event import Service
from remit.model.limits import Effect
from remit.model.names import did_you_mean
from remit.model.principal import Cause
from remit.model.schema import BODY_BYTES
from remit.policy.upstream_tools import effect_of

if TYPE_CHECKING:
    from remit.features.upstreams.server import UpstreamServer
    from remit.features.upstreams.service import Upstreams

TOOL = "tool"
"""The kind of these reviews, and how their ids begin."""
ALL = "*"
MARK = 12
_MARKED = re.compile(rf"(.+)@([0-9a-f]{{{MARK},64}})")
_MOST_SHOWN = 20_000
_MOST_TOLD = 5
_MOST_HELD = 200
LOOK = "remit review list --kind tool"
_MOST = 200
_STATUS: dict[ReviewStatus, Literal["pending", "trusted", "rejected"]] = {
    "pending": "pending",
    "approved": "trusted",
    "rejected": "rejected",
}


class ToolDecision(msgspec.Struct, frozen=True):
    """A decision on its way."""

    status: Status
    by: str
    note: str
    cause: Cause
    effect: Effect | None = None
    """Of all tools of a server only those that do this."""


class DecidedTools(NamedTuple):
    """The tools that a decision was about."""

    server: "UpstreamServer"
    tools: list[str]
    held: dict[str, str]
    """What else waits and needs a decision of its own, with the reasons."""

    def held_items(self) -> list[dict[str, str]]:
        """The same as a list, the beginning of it."""
        return _held(self.held)


def _held(held: dict[str, str]) -> list[dict[str, str]]:
    pairs = itertools.islice(held.items(), _MOST_HELD)
    return [{"tool": name, "reason": reason} for name, reason in pairs]


class ToolReviews(Service):
    """Decides about upstream tools, and puts that in force."""

    def __init__(
        self, upstreams: "Upstreams", audit_log: AuditLog, *, clock: Callable[[], float]
    ) -> None:
        self._upstreams = upstreams
        self._audit_log = audit_log
        self._clock = clock
        self._shown: dict[tuple[str, str, str], str] = {}

    def with_status(
        self, status: Status, effect: Effect | None = None
    ) -> "list[tuple[UpstreamServer, str, Pin]]":
        """Every tool of one status, by server and name; what waits for some callers waits.

        With an effect only those that do this.
        """
        return [
            (server, tool, pin)
            for _, server in sorted(self._upstreams.servers.items())
            for tool, pin in sorted(server.known.tools.items())
            if pin.status == status
            or (status == "pending" and self._upstreams.is_held_back(server, pin))
            if effect is None or _effect(server, pin) == effect
        ]

    def show(self, to: str, server: str, tool: str, pin: Pin) -> None:
        """Remember what somebody was shown, so that a decision is about just that."""
        self._shown.pop((to, server, tool), None)
        if len(self._shown) >= _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
        self._shown[to, server, tool] = shown_of(pin)[1]

    async def decide(self, id_: str, decision: ToolDecision) -> DecidedTools:
        """Decide about `SERVER/TOOL`, `SERVER/TOOL@FINGERPRINT` or `SERVER/*`.

        All tools of a server are those that wait, that were shown, and about which nothing is
        suspicious; the others are told of, and decided about one by one.

        Raises:
            ConflictError: it has changed since it was shown, or is decided so already.
            InvalidDataError: an effect is named, and it is about one tool.
            NotFoundError: there is no such tool.
            StoreError: the decision cannot be kept.
        """
        held: dict[str, str] = {}
        async with self._upstreams.changing:
            server, name = self._server(id_)
            if name == ALL and ALL not in server.known.tools:
                names, held = self._plain(server, decision)
            elif decision.effect is not None:
                message = "an effect is named for all tools of a server, not for one"
                raise InvalidDataError(message, hint=f"tool:{server.name}/{ALL}")
            else:
                names = [self._checked(server, name, decision)]
            with anyio.CancelScope(shield=True):
                await self._put(server, names, decision)
        return DecidedTools(server, names, held)

    def _server(self, id_: str) -> "tuple[UpstreamServer, str]":
        server, _, tool = id_.partition("/")
        found = self._upstreams.servers.get(server)
        if found is None:
            raise NotFoundError(
                f"there is no upstream server {server!r}",
                hint=did_you_mean(server, self._upstreams.servers) or "'remit upstream list'",
            )
        return found, tool

    def _plain(
        self, server: "UpstreamServer", decision: ToolDecision
    ) -> tuple[list[str], dict[str, str]]:
        """What may be decided about together, and what else waits, each with its reason."""
        waits = [(name, pin) for name, pin in server.known.tools.items() if pin.status == "pending"]
        held = {name: self._why_alone(server, name, pin, decision) for name, pin in sorted(waits)}
        found = [name for name, why in held.items() if not why]
        held = {seen(name): why for name, why in held.items() if why}
        if found:
            return found, held
        if not held:
            raise ConflictError(f"no tool of {server.name!r} waits", hint="remit upstream list")
        told = [f"{name}: {why}" for name, why in itertools.islice(held.items(), _MOST_TOLD)]
        told += [f"and {len(held) - _MOST_TOLD} more"] if len(held) > _MOST_TOLD else []
        raise ConflictError(
            f"no tool of {server.name!r} can be decided about with the others: {'; '.join(told)}",
            hint=f"look at them, then decide one by one: {LOOK}",
            details={"held": _held(held)},
        )

    def _why_alone(
        self, server: "UpstreamServer", name: str, pin: Pin, decision: ToolDecision
    ) -> str:
        """Why a tool that waits is not among all tools of its server; empty when it is."""
        if pin.pending is None or pin.reason != NEW:
            return pin.reason or "it cannot be served"
        effect = effect_of(server.upstream, pin.pending)
        if decision.effect is not None and effect != decision.effect:
            return f"its effect is {effect}"
        shown = self._shown.get((decision.by, server.name, name))
        if shown is None:
            return "you were not shown it"
        return "" if shown == pin.pending_fingerprint else "it has changed since you were shown it"

    def _checked(self, server: "UpstreamServer", name: str, decision: ToolDecision) -> str:
        """The tool that is meant, if it may be decided so."""
        name, mark = _named(name, server)
        pin = server.known.tools.get(name)
        if pin is None:
            hint = did_you_mean(name, server.known.tools) or "'remit review list' shows them"
            raise NotFoundError(f"{server.name!r} has no tool {name!r}", hint=hint)
        tool, mark_now = shown_of(pin)
        mark = mark or self._shown.get((decision.by, server.name, name), "")
        if not mark or not mark_now.startswith(mark):
            message = f"the tool {name!r} has changed since you were shown it"
            if not mark:
                message = f"you were not shown the tool {name!r} as it is now"
            raise ConflictError(message, hint=f"look at it: {LOOK}")
        held = self._upstreams.is_held_back(server, pin)
        if pin.status == decision.status and not (held and decision.status == "trusted"):
            raise ConflictError(f"the tool {name!r} is {pin.status} already")
        if decision.status == "trusted":
            if tool is None:
                message = f"the tool {name!r} cannot be served: {pin.reason}"
                raise ConflictError(message, hint="reject it, or keep it out with 'exclude'")
            if fingerprint_of(tool, server.upstream.origin) != mark_now:
                message = f"the server {server.name!r} is reached elsewhere than when it was listed"
                raise ConflictError(message, hint=f"remit upstream check {server.name}")
        return name

    async def _put(
        self, server: "UpstreamServer", names: list[str], decision: ToolDecision
    ) -> None:
        """Write it down and put it in force; trust is given last and taken first."""
        now, pins = self._clock(), dict(server.known.tools)
        for name in names:
            pins[name] = decided(
                pins[name],
                decision.status,
                origin=server.upstream.origin,
                by=decision.by,
                note=decision.note,
                now=now,
            )
        known = msgspec.structs.replace(server.known, tools=pins)
        prints = {name: shown_of(pins[name])[1] for name in names}
        if decision.status == "trusted":
            await self._write_down(server, prints, decision)
            await self._upstreams.keep(known)
            server.known = known
            await self._upstreams.events.put_in_force([server], decision.cause)
            if server.problem:
                raise ConflictError(f"it is trusted, but not in force: {server.problem}")
            return
        for name in names:
            self._upstreams.router.distrust(server.name, name)
        server.known = known
        await self._upstreams.events.put_in_force([server], decision.cause)
        try:
            await self._write_down(server, prints, decision)
            await self._upstreams.keep(known)
        except StoreError as error:
            message = f"{error.message}; it is in force, but a restart would undo it"
            raise StoreError(message, hint=error.hint) from error

    async def _write_down(
        self, server: "UpstreamServer", prints: dict[str, str], decision: ToolDecision
    ) -> None:
        """The fingerprints that were decided about, in the audit."""
        for name, mark in prints.items():
            await self._audit_log.record(
                principal=decision.by,
                event="review:decide",
                outcome="allowed",
                reason=decision.status,
                decision=decision.cause.decision,
                revision=self._upstreams.revision,
                details={"upstream": server.name, "tool": name, "fingerprint": mark},
            )


def _effect(server: "UpstreamServer", pin: Pin) -> Effect | None:
    tool, _ = shown_of(pin)
    return None if tool is None else effect_of(server.upstream, tool)


def _named(text: str, server: "UpstreamServer") -> tuple[str, str]:
    """The tool that `TOOL` or `TOOL@FINGERPRINT` names, and the fingerprint if it has one.

    Raises:
        ConflictError: it could be either: a tool is called as if it were a decision about another.
    """
    marked, tools = _MARKED.fullmatch(text), server.known.tools
    if marked is None or (text in tools and marked.group(1) not in tools):
        return text, ""
    if text in tools:
        message = f"{text!r} could be a tool of {server.name!r}, or {marked.group(1)!r} of it"
        raise ConflictError(message, hint="add '@' and the whole fingerprint of the one you mean")
    return marked.group(1), marked.group(2)


async def _listed(ctx: Context, query: ReviewQuery) -> ReviewItems:
    """Tools of one status with what has changed, as many as fit, and how many were left out."""
    status, effect = query.status, query.effect
    if not ctx.sees_everything or status not in _STATUS:
        return ReviewItems([])
    reviews = ctx.kernel.service(ToolReviews)
    shown: list[dict[str, Any]] = []
    room = BODY_BYTES // 2
    found = reviews.with_status(_STATUS[status], effect)
    for server, name, pin in found[:_MOST]:
        entry = review_view(server, name, pin)
        if status == "pending" and pin.status == "trusted":
            entry |= {"status": status, "reasons": [f"{SHARED}: held back from who holds both"]}
        room -= len(msgspec.json.encode(entry))
        if room < 0 and shown:
            break
        reviews.show(ctx.principal.id, server.name, name, pin)
        shown.append(entry)
    return ReviewItems(shown, len(found) - len(shown))


async def _decide(ctx: Context, tool: str, decision: ReviewDecision) -> dict[str, Any]:
    """Decide about a tool exactly as the caller was shown it."""
    if not ctx.sees_everything:
        raise NotFoundError(f"there is no review '{TOOL}:{tool}'")
    cause = Cause("reviewed", by=ctx.principal.id, decision=ctx.decision)
    done = await ctx.kernel.service(ToolReviews).decide(
        tool,
        ToolDecision(
            _STATUS[decision.status], ctx.principal.id, decision.note, cause, decision.effect
        ),
    )
    server, known = done.server, done.server.known.tools
    entries = [review_view(server, name, known[name]) for name in done.tools]
    answer = {key: value for key, value in entries[0].items() if key != "diff"}
    return answer | {
        "status": decision.status,
        "decided": [{"tool": one["tool"], "fingerprint": one["fingerprint"]} for one in entries],
        "held": done.held_items(),
        "revision": ctx.kernel.authority.catalogue.revision,
    }


TOOL_REVIEWS = ReviewKind(
    name=TOOL, prefix=f"{TOOL}:", listed=_listed, decide=_decide, has_effects=True
)
"""What the review desk knows of these reviews."""
