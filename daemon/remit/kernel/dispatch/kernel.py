"""The kernel: what every daemon has, whatever features it serves.

A feature hands its services to the kernel with `provide`; whoever needs one names its type, as a
parameter of a handler or with `find`. What the kernel itself needs of features it knows as hooks:
the gate before a call that needs an approval, observers of answered calls, parts of a reload, news
of connections. So it knows no feature, and a daemon without one still starts.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

import msgspec

from remit.config.settings.table import Settings
from remit.errors import UnavailableError
from remit.kernel.audit.log import AuditLog
from remit.kernel.authority.explanation import FindObstacle, no_obstacle
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority, HandlerTable
from remit.kernel.authority.session_manager import SessionManager
from remit.kernel.bus.delivery import Delivery
from remit.kernel.dispatch.bills import Bills
from remit.kernel.dispatch.counters import Counters, Load, Traffic
from remit.kernel.dispatch.limits import RateLimiter
from remit.kernel.dispatch.tool_names import CallerNames, OldNames
from remit.kernel.reload.full_reload import ReloadPart
from remit.kernel.reload.reload import Reloader
from remit.kernel.store.protocol import Store
from remit.model.capability import RuntimeCapability
from remit.model.grant import SessionKey
from remit.model.place import Problem
from remit.policy.review import Approval

Part = TypeVar("Part")


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

    def answered(self, caller: str, session: str | None, event: str, code: str = "") -> None:
        """Take note of a call that was answered, well or with an error code."""


class Kernel(msgspec.Struct, eq=False, kw_only=True):
    """Assembled once by the app; a handler reaches it through its context."""

    authority: Authority
    store: Store
    keyring: KeyRing
    delivery: Delivery
    reloader: Reloader
    audit_log: AuditLog
    sessions: SessionManager
    names: CallerNames
    bills: Bills
    rate_limiter: RateLimiter
    counters: Counters
    clock: Callable[[], float]
    """Never jumps: for durations."""
    wall_clock: Callable[[], float]
    """For times that people read."""
    lapsing_clock: Callable[[], float]
    """The time of day, but never back: for what lapses."""
    traffic: Traffic | None = None
    """Absent where nothing is served."""
    load: Callable[[str], Load] | None = None
    """What a principal leaves unread; absent where nothing is served."""
    endpoint: str = ""
    """Where the socket is served; empty until it is."""
    old_names: OldNames = msgspec.field(default_factory=OldNames)
    services: dict[type, Any] = {}
    """The services of features, by type."""
    gate: Gate = msgspec.field(default_factory=ClosedGate)
    observers: list[Observer] = []
    reload_parts: list[ReloadPart] = []
    on_arrival: list[Callable[[str], None]] = []
    """Told the name of a principal with a new connection."""
    on_departure: list[Callable[[str], None]] = []
    """Told the name of a principal that lost a connection."""
    on_end: list[Callable[[str], None]] = []
    """Told the name of a principal that lost its key."""
    file_problems: list[Callable[[], tuple[Problem, ...]]] = []
    """What is wrong with files that features have read, for those who see everything."""
    unavailable: Callable[[], Mapping[str, str]] = dict
    """By server: why its tools cannot be called now."""
    obstacle: FindObstacle = no_obstacle
    """What keeps a name from being an event now, though it could be one."""

    def provide(self, *services: object) -> None:
        """Hand over services of a feature; each is known by its type."""
        self.services |= {type(service): service for service in services}

    def withdraw(self, *services: object) -> None:
        """Take back services that are closed."""
        for service in services:
            self.services.pop(type(service), None)

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


class Startup(msgspec.Struct, eq=False):
    """What a daemon starts from, before its first revision is compiled."""

    settings: Settings
    store: Store
    table: HandlerTable = HandlerTable()
    """The handlers of the first revision; a feature adds those that came at run time."""
    approvals: frozenset[Approval] = frozenset()
    capabilities: tuple[RuntimeCapability, ...] = ()
    """Capabilities that were made at run time."""
    parts: dict[type, Any] = {}
    """By type: what one step of a feature leaves to the next, and what a test replaces."""

    def put(self, *parts: object) -> None:
        """Leave something to a later step."""
        self.parts |= {type(part): part for part in parts}

    def take(self, kind: type[Part], default: Callable[[], Part]) -> Part:
        """What was put there of that type, else the default."""
        found: Part | None = self.parts.get(kind)
        return default() if found is None else found


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How a feature opens, in the order in which a daemon starts; each step may be left out."""

    restore: Callable[[Startup], Awaitable[None]] | None = None
    """Before the definitions compile: what outlived the last run and decides about the first
    revision, such as handlers that came at run time, capabilities and approvals."""
    build: Callable[[Kernel, Startup], None] | None = None
    """Make the services and hand them to the kernel; no input or output."""
    load: Callable[[Kernel], Awaitable[None]] | None = None
    """Before the first request: read what the services kept."""
    run: Callable[[Kernel, Settings], AbstractAsyncContextManager[None]] | None = None
    """Beside the faces, for as long as they serve: opened in the order of `app/features.py` and
    closed in the opposite one."""
