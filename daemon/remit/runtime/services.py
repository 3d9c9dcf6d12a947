"""The long-lived parts that handlers work with."""

from collections.abc import Callable, Mapping

import msgspec

from remit.runtime.approvals import Approvals
from remit.runtime.auditor import Auditor
from remit.runtime.authority import Authority
from remit.runtime.capability_reviews import CapabilityReviews
from remit.runtime.counters import Counters
from remit.runtime.courier import Courier
from remit.runtime.describe import Documented
from remit.runtime.keyring import KeyRing
from remit.runtime.launcher import Launcher
from remit.runtime.mailbox import Mailbox
from remit.runtime.meter import Meter
from remit.runtime.reloader import Reloader
from remit.store.protocol import Store


class Services(msgspec.Struct, eq=False, kw_only=True):
    """Made once by the app; a handler reaches it through its context."""

    authority: Authority
    handlers: Mapping[str, Documented]
    store: Store
    keyring: KeyRing
    courier: Courier
    reloader: Reloader
    mailbox: Mailbox
    auditor: Auditor
    approvals: Approvals
    reviews: CapabilityReviews
    meter: Meter
    counters: Counters
    clock: Callable[[], float]
    """Never jumps: for durations."""
    wall_clock: Callable[[], float]
    """For times that people read."""
    launcher: Launcher | None = None
    """Absent where no processes are started."""
    state_value_limit: int = 262_144
