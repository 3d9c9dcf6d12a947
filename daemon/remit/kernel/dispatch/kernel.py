"""The kernel: what every daemon has, whatever features it serves.

A feature adds its service with `provide`; whoever needs one names its type, as a parameter of a
handler or with `find`. So the kernel knows no feature, and a daemon without one still starts.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from remit.kernel.audit.log import Auditor
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority
from remit.kernel.authority.session_keeper import SessionKeeper
from remit.kernel.bus.delivery import Courier
from remit.kernel.dispatch.counters import Counters, Load, Traffic
from remit.kernel.dispatch.limits import Meter
from remit.kernel.dispatch.old_names import OldNames
from remit.kernel.dispatch.tool_names import CallerNames
from remit.kernel.reload.reload import Reloader
from remit.kernel.store.protocol import Store

Service = TypeVar("Service")


class Kernel(msgspec.Struct, eq=False, kw_only=True):
    """Assembled once by the app; a handler reaches it through its context."""

    authority: Authority
    store: Store
    keyring: KeyRing
    courier: Courier
    reloader: Reloader
    auditor: Auditor
    sessions: SessionKeeper
    names: CallerNames
    meter: Meter
    counters: Counters
    clock: Callable[[], float]
    """Never jumps: for durations."""
    wall_clock: Callable[[], float]
    """For times that people read."""
    traffic: Traffic | None = None
    """Absent where nothing is served."""
    load: Callable[[str], Load] | None = None
    """What a principal leaves unread; absent where nothing is served."""
    old_names: OldNames = msgspec.field(default_factory=OldNames)
    services: dict[type, Any] = {}
    """The services of features, by type."""

    def provide(self, *services: object) -> None:
        """Add services of a feature."""
        self.services |= {type(service): service for service in services}

    def find(self, kind: type[Service]) -> Service | None:
        """The service of that type, or None where its feature is not served."""
        return self.services.get(kind)
