"""Capabilities that were made at run time, in memory."""

from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.row_checks import check_made


class MemoryMade(MemoryTables):
    """See `MadeStore` for what each method promises."""

    async def made_put(self, capability: str, body: bytes) -> None:
        """Keep a capability, in the place of the one of that id."""
        check_made(capability, body)
        self._made[capability] = body

    async def made_remove(self, capability: str) -> bool:
        """Forget a capability; tells whether it was there."""
        check_made(capability)
        return self._made.pop(capability, None) is not None

    async def made_list(self) -> dict[str, bytes]:
        """All of them, by id."""
        return dict(sorted(self._made.items()))
