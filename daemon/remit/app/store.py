"""The store of an installation: the rows of the kernel and of every feature over one database."""

from remit.features.agents.tokens import TokenRows
from remit.features.capabilities.service import RuntimeCapabilityRows
from remit.features.discovery.learning.store import LessonRows
from remit.features.files.store import FileRows
from remit.features.messages.mailbox import MailRows
from remit.features.registry.store import TrialRows
from remit.features.reviews.store import ReviewRows
from remit.features.state.store import StateRows
from remit.kernel.audit.store import AuditRows
from remit.kernel.authority.store import PrincipalRows
from remit.kernel.dispatch.bills import BillRows
from remit.kernel.dispatch.tool_names import NameRows
from remit.kernel.store.rows import BlobRows


class Store(
    AuditRows,
    StateRows,
    PrincipalRows,
    FileRows,
    LessonRows,
    RuntimeCapabilityRows,
    MailRows,
    ReviewRows,
    BlobRows,
    TokenRows,
    NameRows,
    BillRows,
    TrialRows,
):
    """All rows, for plug-ins: `from remit import Store`. What is ours names the rows it needs.

    An acknowledged write (the call returned) is durable, and every later read sees it. A write
    whose caller was cancelled may or may not have happened. All methods raise `StoreError` when the
    store itself cannot be read or written. On a full disk it still takes rights away (`key_revoke`,
    `agent_remove`, `token_remove`, `capability_remove`) and writes essential entries of the audit.
    """

    @property
    def is_full(self) -> bool:
        """Tell whether the disk is full, so that only what is essential is written."""
        return self.database.is_full
