"""Sessions in memory."""

from collections.abc import Sequence

from remit.kernel.store.memory_tables import MemoryTables
from remit.kernel.store.records import SessionRecord
from remit.kernel.store.row_checks import check_session, check_session_name


class MemorySessions(MemoryTables):
    """See `SessionStore` for what each method promises."""

    async def session_put(self, record: SessionRecord) -> None:
        """Keep a session, in the place of the one of that owner and name."""
        check_session(record)
        self._sessions[record.owner, record.name] = record

    async def session_remove(self, sessions: Sequence[tuple[str, str]]) -> int:
        """Forget these, each an owner and a name; tells how many there were."""
        for owner, name in sessions:
            check_session_name(owner, name)
        return sum(self._sessions.pop((owner, name), None) is not None for owner, name in sessions)

    async def session_list(self) -> tuple[SessionRecord, ...]:
        """All sessions, by owner and name."""
        return tuple(record for _, record in sorted(self._sessions.items()))
