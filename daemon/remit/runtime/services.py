"""The long-lived parts that handlers work with."""

from collections.abc import Callable

import msgspec

from remit.discovery.experience import Experience
from remit.model.web_access import WebAccess
from remit.runtime.approvals import Approvals
from remit.runtime.auditor import Auditor
from remit.runtime.authority import Authority
from remit.runtime.awareness import Awareness
from remit.runtime.bills import Bills
from remit.runtime.caller_names import CallerNames
from remit.runtime.capability_reviews import CapabilityReviews
from remit.runtime.card_reviews import CardReviews
from remit.runtime.counters import Counters, Load, Traffic
from remit.runtime.courier import Courier
from remit.runtime.extensions import Extensions
from remit.runtime.finder import Finder
from remit.runtime.keyring import KeyRing
from remit.runtime.launcher import Launcher
from remit.runtime.made_capabilities import MadeCapabilities
from remit.runtime.mailbox import Mailbox
from remit.runtime.meter import Meter
from remit.runtime.old_names import OldNames
from remit.runtime.reloader import Reloader
from remit.runtime.session_keeper import SessionKeeper
from remit.runtime.token_keeper import TokenKeeper
from remit.runtime.tool_reviews import ToolReviews
from remit.runtime.upstreams import Upstreams
from remit.store.protocol import Store
from remit.store.records import FileLimits, StateQuota


class Services(msgspec.Struct, eq=False, kw_only=True):
    """Made once by the app; a handler reaches it through its context."""

    authority: Authority
    store: Store
    keyring: KeyRing
    courier: Courier
    reloader: Reloader
    mailbox: Mailbox
    auditor: Auditor
    approvals: Approvals
    reviews: CapabilityReviews
    card_reviews: CardReviews
    sessions: SessionKeeper
    tokens: TokenKeeper
    finder: Finder
    extensions: Extensions
    upstreams: Upstreams
    tool_reviews: ToolReviews
    made: MadeCapabilities
    names: CallerNames
    bills: Bills
    experience: Experience
    awareness: Awareness
    meter: Meter
    counters: Counters
    clock: Callable[[], float]
    """Never jumps: for durations."""
    wall_clock: Callable[[], float]
    """For times that people read."""
    launcher: Launcher | None = None
    """Absent where no processes are started."""
    traffic: Traffic | None = None
    """Absent where nothing is served."""
    load: Callable[[str], Load] | None = None
    """What somebody leaves unread; absent where nothing is served."""
    state_value_limit: int = 262_144
    state_quota: StateQuota = StateQuota()
    web: WebAccess = WebAccess()
    file_limits: FileLimits = FileLimits()
    old_names: OldNames = msgspec.field(default_factory=OldNames)
