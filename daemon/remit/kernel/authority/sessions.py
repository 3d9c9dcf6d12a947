"""The sessions that were opened, and what they leave of a grant.

A name that nobody opened is a mere label and narrows nothing. One that was opened and is closed, or
that cannot be read, leaves nothing: no mishap makes a grant wider.
"""

from collections.abc import Callable, Iterable, Sequence

from remit.errors import NotFoundError, RemitError
from remit.model.grant import Grant, Session
from remit.policy.catalogue import Catalogue
from remit.policy.decide import narrow, shut

_SEATS = 50_000
_NARROWED = 4096
"""Grants are some 10 KB each; what is in use is remembered by the fleet as well."""


class Sessions:
    """All sessions by their owner and name, closed ones included."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, Session]] = {}
        self._by_id: dict[str, Session] = {}
        self._narrowed: dict[tuple[int, tuple[str, ...]], tuple[Grant, Grant]] = {}
        self._seats: dict[tuple[str, str], tuple[Grant, Grant]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, session: Session) -> None:
        """Take in a session, in the place of the one that its owner had under that name."""
        owned = self._owned.setdefault(session.owner, {})
        before = owned.get(session.name)
        if before is not None:
            self._by_id.pop(before.id, None)
        owned[session.name] = session
        self._by_id[session.id] = session
        self.forget()

    def drop(self, owner: str) -> None:
        """Forget the sessions of somebody who is gone; nobody who could name them is left."""
        for session in self._owned.pop(owner, {}).values():
            self._by_id.pop(session.id, None)
        self.forget()

    def forget(self) -> None:
        """Compute everything anew when it is asked for."""
        self._narrowed.clear()
        self._seats.clear()

    def copy(self) -> "Sessions":
        """The same sessions, remembering for itself; for looking at, and not for changing."""
        other = Sessions()
        # Each in one step: this may run in a thread, while the loop changes what is copied.
        other._owned = dict(self._owned)
        other._by_id = dict(self._by_id)
        return other

    def get(self, owner: str, name: str) -> Session | None:
        """The session of that name, open or closed, or None."""
        return self._owned.get(owner, {}).get(name)

    def by_id(self, session: str) -> Session | None:
        """One session, or None."""
        return self._by_id.get(session)

    def of(self, owner: str) -> list[Session]:
        """All sessions of somebody, by their name."""
        return [session for _, session in sorted(self._owned.get(owner, {}).items())]

    def count(self, owner: str) -> tuple[int, int]:
        """How many sessions of somebody are open, and how many there are in all."""
        owned = self._owned.get(owner, {})
        return sum(one.is_open for one in owned.values()), len(owned)

    def owners(self) -> list[str]:
        """Everybody who has sessions."""
        return list(self._owned)

    def named(self, name: str, line: Iterable[str]) -> tuple[Session, ...]:
        """All sessions of one name that the members of a line opened.

        All of them count: opening a second one under the same name is no way out of the first.
        """
        found = (self._owned.get(owner, {}).get(name) for owner in line)
        return tuple(session for session in found if session is not None)

    def seat(
        self,
        agent: str,
        name: str,
        grant: Grant,
        catalogue: Catalogue,
        line: Callable[[str], Iterable[str]],
    ) -> Grant:
        """What is left of a grant for requests of an agent that name a session."""
        known = self._seats.get((agent, name))
        if known is not None and known[0] is grant:
            return known[1]
        ids = tuple(session.id for session in self.named(name, line(agent)))
        found = self.narrowed(catalogue, grant, ids)
        if len(self._seats) >= _SEATS:  # a flood of names must not become a flood of memory
            self._seats.clear()
        self._seats[agent, name] = (grant, found)
        return found

    def narrowed(self, catalogue: Catalogue, grant: Grant, sessions: Sequence[str]) -> Grant:
        """What several sessions together leave of a grant; one that is gone leaves nothing."""
        if not sessions:
            return grant
        # The entry keeps the grant alive: an id that could be reused would hand out other rights.
        key = (id(grant), tuple(sessions))
        known = self._narrowed.get(key)
        if known is None:
            if len(self._narrowed) >= _NARROWED:
                self._narrowed.clear()
            known = self._narrowed[key] = (grant, self._narrow(catalogue, grant, sessions))
        return known[1]

    def _narrow(self, catalogue: Catalogue, grant: Grant, sessions: Iterable[str]) -> Grant:
        for each in sessions:
            session = self._by_id.get(each)
            if session is None:
                return shut(grant)
            try:
                grant = narrow(catalogue, grant, session)
            except RemitError:  # kept by another version, and not readable for this one
                return shut(grant)
        return grant


def closed(name: str) -> NotFoundError:
    """The answer to working with a session that is over."""
    return NotFoundError(
        f"the session {name!r} is closed",
        hint="its owner can open a new one of that name with session:open",
        details={"session": name},
    )
