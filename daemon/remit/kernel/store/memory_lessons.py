"""What use has taught, in memory."""

from collections.abc import Mapping, Sequence

from remit.kernel.store.checks import check_text
from remit.kernel.store.memory_tables import MemoryTables


class MemoryLessons(MemoryTables):
    """See `LessonStore` for what each method promises."""

    async def lesson_write(
        self, tenant: str, put: Mapping[str, bytes], removed: Sequence[str]
    ) -> None:
        """Keep and forget lessons of a tenant, all at once."""
        for name in (tenant, *put, *removed):
            check_text(name, "$.name")
        for name in removed:
            self._lessons.pop((tenant, name), None)
        self._lessons |= {(tenant, name): body for name, body in put.items()}

    async def lesson_list(self, tenant: str) -> dict[str, bytes]:
        """All lessons of a tenant, by name."""
        found = sorted(self._lessons.items())
        return {name: body for (owner, name), body in found if owner == tenant}
