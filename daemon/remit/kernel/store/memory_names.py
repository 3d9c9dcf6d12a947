"""Tool names that were shown, in memory."""

from collections.abc import Mapping

from remit.kernel.store.checks import check_text
from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.row_checks import check_tool_names, name_given, names_full


class MemoryNames(MemoryTables):
    """See `NameStore` for what each method promises."""

    async def name_add(self, owner: str, names: Mapping[str, str], *, limit: int) -> None:
        """Keep names of events that `owner` has none for."""
        check_tool_names(owner, names)
        if sum(map(len, self._names.values())) + len(names) > limit:
            raise names_full(limit)
        known = self._names.get(owner, {})
        if known.keys() & names or {*known.values()} & {*names.values()}:
            raise name_given(owner)
        self._names[owner] = {**known, **names}

    async def name_list(self, owner: str) -> dict[str, str]:
        """The names of `owner`, by event."""
        check_text(owner, "$.owner")
        return dict(sorted(self._names.get(owner, {}).items()))
