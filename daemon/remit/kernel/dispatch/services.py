"""The long-lived parts that handlers work with."""

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
from remit.kernel.dispatch.bills import Bills
from remit.kernel.dispatch.kernel import Kernel
from remit.kernel.store.records import FileLimits, StateQuota
from remit.model.paths import WebAccess


class Services(Kernel, kw_only=True, eq=False):
    """The kernel, with the services that features do not bring by themselves yet."""

    mailbox: Mailbox
    approvals: Approvals
    reviews: CapabilityReviews
    card_reviews: CardReviews
    tokens: TokenKeeper
    finder: Finder
    extensions: Extensions
    upstreams: Upstreams
    tool_reviews: ToolReviews
    made: MadeCapabilities
    bills: Bills
    experience: Experience
    awareness: Awareness
    launcher: Launcher | None = None
    """Absent where no processes are started."""
    state_value_limit: int = 262_144
    state_quota: StateQuota = StateQuota()
    web: WebAccess = WebAccess()
    file_limits: FileLimits = FileLimits()
