"""The context of a call: who asks, under which grant, and the kernel with its services.

The kernel is what every daemon has, whatever features it serves. A feature hands its services to
it with `provide`; whoever needs one names its type, as a parameter of a handler or with `find`.
What the kernel itself needs of features it knows as hooks: the gate before a call that needs an
approval, observers of answered calls, parts of a reload, news of connections. So it knows no
feature, and a daemon without one still starts.

Light to import, since every module with handlers imports it.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from remit.errors import DeniedError, LimitError, Problem, UnavailableError
from remit.model.grant import Grant, SessionKey
from remit.model.principal import Principal
from remit.policy.catalogue import Catalogue
from remit_client.wire import Progress, RequestId

if TYPE_CHECKING:
    from remit.kernel.audit.log import AuditLog
    from remit.kernel.authority.explanation import FindObstacle
    from remit.kernel.authority.keyring import KeyRing
    from remit.kernel.authority.revision import Authority
    from remit.kernel.authority.session_manager import SessionManager
    from remit.kernel.bus.delivery import Delivery
    from remit.kernel.dispatch.bills import Bills
    from remit.kernel.dispatch.counters import Counters, Load, Traffic
    from remit.kernel.dispatch.limits import RateLimiter
    from remit.kernel.dispatch.tool_list import Documented
    from remit.kernel.dispatch.tool_names import CallerNames, Kind, OldNames
    from remit.kernel.reload.full_reload import ReloadPart
    from remit.kernel.reload.reload import Reloader
    from remit.kernel.store.database import Database

Part = TypeVar("Part")

MAX_DEPTH = 16


class Onward(Protocol):
    """The dispatcher as handlers call it: the same door that their caller came through."""

    async def ask(
        self,
        principal: Principal,
        event: str,
        data: Any = None,
        *,
        session: str | None = None,
        depth: int = 0,
    ) -> Any:
        """The answer's data; a failure is raised."""


def _at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


class Context(msgspec.Struct, eq=False):
    """The context of one call. Everything in it belongs to one revision."""

    principal: Principal
    grant: Grant
    catalogue: Catalogue
    kernel: "Kernel"
    onward: Onward
    request_id: RequestId = 0
    session: str | None = None
    decision: str = ""
    progress: Callable[[Progress], None] | None = None
    depth: int = 0
    connection: Any = None
    """Where the request came in; None for callers that nothing can be pushed to."""
    through: Callable[..., Any] = _at_once
    """How `report` and `emit` reach the loop, to which the sockets belong."""
    handlers: Mapping[str, "Documented"] = {}
    """By event; those that the catalogue was compiled against."""
    withheld: dict[str, Any] = {}
    """What the audit is told of a failure and the caller is not."""
    warnings: list[dict[str, str]] | None = None
    """What the answer says beside its data; None: nothing."""

    def told_old_name(self, kind: "Kind", old: str, new: str) -> None:
        """Warn the caller that it used an old name of something that it may see."""
        warning = self.kernel.old_names.note(self.principal.id, kind, old, new)
        self.warnings = [*(self.warnings or ()), warning]

    @property
    def services(self) -> Any:
        """The former name of `kernel`, with the store that plug-ins found there."""
        import warnings  # noqa: PLC0415 - only where a plug-in is behind

        warnings.warn("write ctx.kernel for ctx.services", DeprecationWarning, stacklevel=2)
        return _FormerServices(self.kernel)

    @property
    def sees_everything(self) -> bool:
        """Tell whether nothing in this revision is hidden from the caller."""
        return self.principal.is_operator or self.grant.bits == self.catalogue.universe.everything

    def report(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell a waiting caller how far the work has come; nobody may be listening."""
        if self.progress is not None:
            self.through(self.progress, Progress(self.request_id, done, total, message))

    def emit(self, event: str, data: Any) -> int:
        """Push an event to everybody who asked for it and may see it now; answers how many."""
        return int(self.through(self.kernel.delivery.publish, event, data, self.principal.id))

    async def call(self, event: str, data: Any = None) -> Any:
        """Call another event in the name of the same caller, and under its grant.

        Raises:
            RemitError: what the other event answered.
        """
        if self.depth == MAX_DEPTH:
            message = f"{MAX_DEPTH} handlers have called on, one after the other"
            raise LimitError(message, hint="do two of them call each other?")
        fleet = self.kernel.authority.fleet
        if fleet.principal(self.principal.id) is not None and not fleet.lives(self.principal):
            # Somebody else has the name by now, and must not lend its rights to this call.
            message = f"{self.principal.id!r}, who made this call, is gone"
            raise DeniedError(message, reason="revoked")
        return await self.onward.ask(
            self.principal, event, data, session=self.session, depth=self.depth + 1
        )


class _FormerServices:
    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel

    def __getattr__(self, name: str) -> Any:
        if name == "store":
            return import_module("remit").Store(self._kernel.database)
        return getattr(self._kernel, name)


class Demand(msgspec.Struct, frozen=True):
    """A call that needs an approval."""

    principal: str
    event: str
    data: Any
    decision: str
    revision: int
    session: SessionKey = SessionKey("", "", "")
    """Whose session the call works in."""
    opened: tuple[str, ...] = ()
    """The ids of the opened sessions that bind it: one opened anew under a name is another."""
    meaning: Callable[[], Any] = lambda: None
    """What the data stand for by now, such as the rights behind the name of a profile."""


class Gate(Protocol):
    """What a call that needs an approval has to pass."""

    async def clear(self, demand: Demand, *, budget: float) -> str:
        """Wait until exactly this call is approved; answers the id of the approval.

        Raises:
            RemitError: it is not approved, or not yet.
        """


class ClosedGate:
    """The gate of a daemon in which nobody can approve: it lets nothing through."""

    async def clear(self, demand: Demand, *, budget: float) -> str:
        """Refuse the call."""
        message = f"{demand.event!r} needs an approval, and nobody can give one here"
        raise UnavailableError(message, hint="serve the feature 'reviews'")


class Observer(Protocol):
    """Whoever learns from how calls went."""

    @property
    def waiting(self) -> Any:
        """Empty when no call matters now; then watching costs nothing."""

    def answered(
        self,
        caller: str,
        session: str | None,
        event: str,
        code: str = "",
        seconds: float | None = None,
    ) -> None:
        """Take note of a call that was answered, well or with an error code.

        Called once for each call that came through the door, however it ended, so it must be quick.

        Args:
            caller: who called.
            session: the session that the call named.
            event: what was called, by its present name.
            code: the code of its error; empty when it went well.
            seconds: how long its handler took; None where that was not measured.
        """


class Kernel(msgspec.Struct, eq=False, kw_only=True):
    """Assembled once by the app; a handler reaches it through its context."""

    authority: "Authority"
    database: "Database"
    keyring: "KeyRing"
    delivery: "Delivery"
    reloader: "Reloader"
    audit_log: "AuditLog"
    sessions: "SessionManager"
    names: "CallerNames"
    old_names: "OldNames"
    bills: "Bills"
    rate_limiter: "RateLimiter"
    counters: "Counters"
    clock: Callable[[], float]
    """Never jumps: for durations."""
    wall_clock: Callable[[], float]
    """For times that people read."""
    lapsing_clock: Callable[[], float]
    """The time of day, but never back: for what lapses."""
    traffic: "Traffic | None" = None
    """Absent where nothing is served."""
    load: "Callable[[str], Load] | None" = None
    """What a principal leaves unread; absent where nothing is served."""
    endpoint: str = ""
    """Where the socket is served; empty until it is."""
    services: dict[type, Any] = {}
    """The services of features, by type."""
    gate: Gate = msgspec.field(default_factory=ClosedGate)
    observers: list[Observer] = []
    on_refusal: list[Callable[[str, str | None, str], None]] = []
    """Told who asked for what it may not use, in which session; nobody else may be told of it."""
    reload_parts: "list[ReloadPart]" = []
    on_arrival: list[Callable[[str], None]] = []
    """Told the name of a principal with a new connection."""
    on_departure: list[Callable[[str], None]] = []
    """Told the name of a principal that lost a connection."""
    on_end: list[Callable[[str], None]] = []
    """Told the name of a principal that lost its key."""
    file_problems: list[Callable[[], tuple[Problem, ...]]] = []
    """What is wrong with files that features have read, for those who see everything."""
    figures: list[Callable[[], Mapping[str, float]]] = []
    """Totals that features count, by name, for whoever measures the daemon."""
    unavailable: Callable[[], Mapping[str, str]] = dict
    """By server: why its tools cannot be called now."""
    obstacle: "FindObstacle" = lambda _event: None
    """What keeps a name from being an event now, though it could be one."""

    def provide(self, *services: object) -> None:
        """Hand over services of a feature; each is known by its type."""
        self.services |= {type(service): service for service in services}

    def find(self, kind: type[Part]) -> Part | None:
        """The service of that type, or None where its feature is not served."""
        return self.services.get(kind)

    def service(self, kind: type[Part]) -> Part:
        """The service of that type.

        Raises:
            UnavailableError: its feature is not served.
        """
        found: Part | None = self.services.get(kind)
        if found is None:
            message = f"{kind.__name__} is not served by this daemon"
            raise UnavailableError(message, hint="its feature was left out of app/features.py")
        return found

    def ended(self, name: str) -> None:
        """Tell features that a principal lost its key."""
        self.bills.ended(name)
        for tell in self.on_end:
            tell(name)

    def arrived(self, name: str) -> None:
        """Tell features that a principal has a new connection."""
        for tell in self.on_arrival:
            tell(name)

    def departed(self, name: str) -> None:
        """Tell features that a principal lost a connection."""
        for tell in self.on_departure:
            tell(name)
