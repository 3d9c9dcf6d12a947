"""Tool names that were shown, in SQLite."""

import sqlite3
from collections.abc import Mapping

from remit.errors import ConflictError, InvalidDataError, LimitError
from remit.kernel.store.checks import check_text
from remit.kernel.store.database import Rows

_INSERT = "INSERT INTO tool_name (owner, event, name) VALUES (?, ?, ?)"


class NameRows(Rows):
    """The tool names that somebody was shown. They go with it, and a newcomer begins anew."""

    async def name_add(self, owner: str, names: Mapping[str, str], *, limit: int) -> None:
        """Keep the names of events that `owner` has none for, all of them or none.

        Raises:
            ConflictError: it has a name for one of the events, or one of the names.
            InvalidDataError: the owner, an event or a name cannot be one.
            LimitError: there would be more than `limit` names of all owners together.
        """
        _check_tool_names(owner, names)
        rows = [(owner, event, name) for event, name in names.items()]

        def write(connection: sqlite3.Connection) -> None:
            (stored,) = connection.execute("SELECT count(*) FROM tool_name").fetchone()
            if stored + len(rows) > limit:
                raise _names_full(limit)
            try:
                connection.executemany(_INSERT, rows)
            except sqlite3.IntegrityError as error:
                raise _name_given(owner) from error

        await self.database.write(write)

    async def name_list(self, owner: str) -> dict[str, str]:
        """The names of `owner`, by event."""
        check_text(owner, "$.owner")
        query = "SELECT event, name FROM tool_name WHERE owner = ? ORDER BY event"
        return await self.database.read(
            lambda connection: dict(connection.execute(query, (owner,)))
        )


def _check_tool_names(owner: str, names: Mapping[str, str]) -> None:
    """Refuse names that could not be kept, or that two events would share."""
    check_text(owner, "$.owner")
    for event, name in names.items():
        check_text(event, "$.names")
        check_text(name, "$.names")
    if not owner or "" in names or "" in names.values():
        raise InvalidDataError("a tool name needs an owner and an event")
    if len(set(names.values())) < len(names):
        raise _name_given(owner)


def _name_given(owner: str) -> ConflictError:
    """The refusal of a second name for an event, or of a name for a second event."""
    return ConflictError(f"a tool name of {owner!r} would change its event")


def _names_full(limit: int) -> LimitError:
    """The refusal of more names than are kept."""
    return LimitError(
        f"{limit:,} tool names are kept already",
        hint="end agents that are done: their names go with them",
        details={"limit": "tool_names", "retry_after": None},
    )
