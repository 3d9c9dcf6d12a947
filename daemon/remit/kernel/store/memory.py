"""A store without a file, for tests. It keeps the whole contract except surviving the process."""

from remit.kernel.store.memory_agents import MemoryAgents, MemoryMail
from remit.kernel.store.memory_audit import MemoryAudit
from remit.kernel.store.memory_bills import MemoryBills
from remit.kernel.store.memory_files import MemoryFiles
from remit.kernel.store.memory_lessons import MemoryLessons
from remit.kernel.store.memory_made import MemoryMade
from remit.kernel.store.memory_names import MemoryNames
from remit.kernel.store.memory_reviews import MemoryBlobs, MemoryReviews
from remit.kernel.store.memory_sessions import MemorySessions
from remit.kernel.store.memory_state import MemoryState
from remit.kernel.store.memory_tokens import MemoryTokens


class MemoryStore(
    MemoryState,
    MemoryAgents,
    MemorySessions,
    MemoryFiles,
    MemoryLessons,
    MemoryMade,
    MemoryMail,
    MemoryAudit,
    MemoryReviews,
    MemoryBlobs,
    MemoryTokens,
    MemoryNames,
    MemoryBills,
):
    """Keeps the contract of `Store` until it is dropped."""
