"""The tool names of each caller: given once, kept, and never given to another event.

Names are given among what the caller holds. A name is on disk before it is shown, so neither a
restart nor a server that comes, goes or is put in quarantine makes it mean another event. Names
that cannot be kept are replaced by ones that need not be: they carry a fingerprint of their event.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Literal

import anyio
import structlog

from remit.errors import ConflictError, InvalidDataError, LimitError, RemitError
from remit.kernel.store.rows import Rows, check_text
from remit.model.event import Universe
from remit.model.principal import Principal
from remit.policy.tool_names import is_sure, names_for, sure_name

log = structlog.get_logger()

Kind = Literal["event", "capability"]
MOST_OF_ONE = 4_096
"""Names that are kept of one caller."""
MOST_IN_ALL = 400_000
_REMEMBERED = 2_000
"""Callers whose names are in memory; those of others are read again."""
_MOST_USES = 10_000
"""Uses of old names that are remembered; after that the log is told anew."""
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


class CallerNames:
    """Gives names to the tools of callers."""

    def __init__(
        self, rows: NameRows, *, of_one: int = MOST_OF_ONE, in_all: int = MOST_IN_ALL
    ) -> None:
        self._rows = rows
        self._of_one = of_one
        self._in_all = in_all
        self._known: OrderedDict[tuple[str, int], Mapping[str, str]] = OrderedDict()
        self._giving = anyio.Lock()

    async def kept(self, who: Principal) -> Mapping[str, str]:
        """The names that somebody was shown, by event.

        Raises:
            StoreError: they cannot be read.
        """
        # A later one of the same name is somebody else, and begins anew.
        key = (who.id, who.serial)
        known = self._known.get(key)
        if known is None:
            known = await self._rows.name_list(who.id)
        self._remember(key, known)
        return known

    async def look(
        self, who: Principal, universe: Universe, events: Collection[str]
    ) -> dict[str, str]:
        """The names that somebody would be shown, for whoever else asks about it.

        Raises:
            StoreError: those that it was shown cannot be read.
        """
        return names_for(universe, events, await self.kept(who))

    async def give(
        self, who: Principal, universe: Universe, events: Collection[str]
    ) -> dict[str, str]:
        """The names of some events, which are about to be shown to somebody who holds them.

        Raises:
            StoreError: those that it was shown before cannot be read.
        """
        kept = await self.kept(who)
        names = names_for(universe, events, kept)
        if not _new(names, kept):
            return names
        async with self._giving:
            kept = await self.kept(who)  # somebody may have been faster
            names = names_for(universe, events, kept)
            new = _new(names, kept)
            if new and not await self._keep(who, kept, new):
                names |= {event: sure_name(event) for event in new}
        return names

    async def _keep(self, who: Principal, kept: Mapping[str, str], new: Mapping[str, str]) -> bool:
        """Tell whether new names are on disk now."""
        if len(kept) + len(new) > self._of_one:
            log.warning("tool_names_full", caller=who.id, names=len(kept))
            return False
        try:
            await self._rows.name_add(who.id, new, limit=self._in_all)
        except RemitError as error:
            log.warning("tool_names_not_kept", caller=who.id, problem=error.message)
            self._known.pop((who.id, who.serial), None)
            return False
        self._remember((who.id, who.serial), {**kept, **new})
        return True

    def _remember(self, key: tuple[str, int], names: Mapping[str, str]) -> None:
        self._known[key] = names
        self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def event_named(
    name: str, names: Mapping[str, str], kept: Mapping[str, str]
) -> tuple[str | None, str]:
    """The event that a caller means by a tool name, and what it was ever shown under that name.

    Args:
        name: as it was said.
        names: what the caller may call now, by event.
        kept: what it was shown before, by event.
    """
    now = next((event for event, one in names.items() if one == name), None)
    if now is None and is_sure(name):
        now = next((event for event in names if sure_name(event) == name), None)
    before = next((event for event, one in kept.items() if one == name), name)
    return now, now or before


def _new(names: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """The names that were not shown yet; an event that was renamed has the one of its old name."""
    if names.keys() <= kept.keys():
        return {}
    taken = set(kept.values())
    return {e: name for e, name in names.items() if e not in kept and name not in taken}


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


class OldNames:
    """Remembers who was written down with which name."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._logged: set[tuple[str, Kind, str]] = set()

    def note(self, principal: str, kind: Kind, old: str, new: str) -> dict[str, str]:
        """Take note of a use; answers the warning for the one who used it."""
        use = (principal, kind, old)
        if use not in self._logged:
            if len(self._logged) >= _MOST_USES:
                self._logged.clear()
            self._logged.add(use)
            log.warning("old_name_used", principal=principal, kind=kind, old=old, new=new)
        message = f"{old!r} is an old name of the {kind} {new!r}"
        return {"code": "old_name", "message": message, "hint": f"write {new!r}"}
