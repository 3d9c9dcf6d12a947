"""The long-lived parts that handlers work with."""

from collections.abc import Callable

import msgspec

from remit.features.agents.launcher import Launcher
from remit.features.agents.token_keeper import TokenKeeper
from remit.features.capabilities.service import MadeCapabilities
from remit.features.cards.reviews import CardReviews
from remit.features.cards.service import Awareness
from remit.features.discovery.experience import Experience
from remit.features.discovery.service import Finder
from remit.features.extensions.service import Extensions
from remit.features.messages.mailbox import Mailbox
from remit.features.reviews.approvals import Approvals
from remit.features.reviews.capabilities import CapabilityReviews
from remit.features.upstreams.reviews import ToolReviews
from remit.features.upstreams.service import Upstreams
from remit.kernel.audit.log import Auditor
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority
from remit.kernel.authority.session_keeper import SessionKeeper
from remit.kernel.bus.delivery import Courier
from remit.kernel.dispatch.bills import Bills
from remit.kernel.dispatch.counters import Counters, Load, Traffic
from remit.kernel.dispatch.limits import Meter
from remit.kernel.dispatch.old_names import OldNames
from remit.kernel.dispatch.tool_names import CallerNames
from remit.kernel.reload.reload import Reloader
from remit.kernel.store.protocol import Store
from remit.kernel.store.records import FileLimits, StateQuota
from remit.model.paths import WebAccess


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
