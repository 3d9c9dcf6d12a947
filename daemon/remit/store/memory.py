"""A store without a file, for tests. It keeps the whole contract except surviving the process."""

from remit.store.memory_agents import MemoryAgents, MemoryMail
from remit.store.memory_audit import MemoryAudit
from remit.store.memory_reviews import MemoryBlobs, MemoryReviews
from remit.store.memory_state import MemoryState


class MemoryStore(MemoryState, MemoryAgents, MemoryMail, MemoryAudit, MemoryReviews, MemoryBlobs):
    """Keeps the contract of `Store` until it is dropped."""
