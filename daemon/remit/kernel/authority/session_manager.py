"""Opening, narrowing and closing sessions, so that a restart finds them again.

What narrows is in force before it is written, and stays so when the store fails. What opens is
written first: a session that was acknowledged is there after a restart.
"""

import os
from collections.abc import Callable

import anyio
import msgspec
import structlog

from remit.errors import ConflictError, LimitError, TooLargeError, UnknownAgentError
from remit.kernel.authority.fleet import Fleet
from remit.kernel.authority.sessions import closed
from remit.kernel.authority.standing import has_its_owner, session_of
from remit.kernel.authority.store import PrincipalRows
from remit.kernel.store.records import SessionRecord
from remit.model.grant import Narrowing, Session, SessionKey
from remit.model.principal import OPERATOR_ID, Principal

log = structlog.get_logger()

MAX_OPEN = 50
"""Sessions that one principal may have open at the same time."""
MAX_NAMES = 1000
"""Names that one principal may have used for sessions, closed ones included.

A closed name is never forgotten while its owner lives: it would turn into a label that narrows
nothing. So there is an end to new names, and old ones are opened again.
"""
MAX_IN_ALL = 20_000
MAX_STEPS = 32
MAX_BYTES = 16_384
"""All the steps of one session together: each of them is taken whenever a grant is narrowed."""


class SessionManager:
    """Changes sessions, one change after the other."""

    def __init__(self, rows: PrincipalRows, fleet: Fleet, clock: Callable[[], float]) -> None:
        self._rows = rows
        self._fleet = fleet
        self._clock = clock
        self._changing = anyio.Lock()

    async def open(self, owner: Principal, name: str, step: Narrowing) -> Session:
        """Open a session; a closed one of that name gives up its place.

        Raises:
            ConflictError: the owner has an open session of that name.
            LimitError: it has too many.
            TooLargeError: the lists are too long.
            UnknownAgentError: the owner was ended meanwhile.
        """
        async with self._changing:
            self._check_room(owner.id, name)
            session = Session(
                id=os.urandom(8).hex(),
                name=name,
                owner=owner.id,
                owner_key=_key_of(self._fleet, owner.id),
                opened_at=self._clock(),
                steps=() if step == Narrowing() else (step,),
            )
            _check_size(session)
            # Shielded: one that is kept and not in force would narrow only after a restart.
            with anyio.CancelScope(shield=True):
                await self._rows.session_put(record_of(session))
                if not self._fleet.lives(owner):
                    await self._rows.session_remove([(owner.id, name)])
                    raise UnknownAgentError(f"{owner.id!r} was ended meanwhile")
                self._fleet.put_session(session)
        return session

    async def narrow(self, session: Session, step: Narrowing) -> Session:
        """Add a step to an open session; it counts at once.

        Raises:
            LimitError: it has too many steps.
            NotFoundError: it was closed, or is gone with its owner.
            TooLargeError: the lists are too long.
        """
        async with self._changing:
            present = self._present(session)
            if not present.is_open:
                raise closed(present.name)
            if step not in present.steps:
                present = msgspec.structs.replace(present, steps=(*present.steps, step))
            _check_size(present)
            await self._put(present)
        return present

    async def close(self, session: Session) -> Session:
        """Close a session for good, and remove its files. Closing it twice does no harm."""
        async with self._changing:
            present = self._present(session)
            if present.is_open:
                present = msgspec.structs.replace(present, closed_at=self._clock(), steps=())
            await self._put(present)
            await self._rows.file_clear(SessionKey(present.owner, present.owner_key, present.name))
        return present

    async def _put(self, session: Session) -> None:
        self._fleet.put_session(session)
        with anyio.CancelScope(shield=True):
            await self._rows.session_put(record_of(session))

    def _present(self, session: Session) -> Session:
        """The same session as it is now, and not a later one of its name."""
        found = self._fleet.sessions.by_id(session.id)
        if found is None:
            raise closed(session.name)
        return found

    def _check_room(self, owner: str, name: str) -> None:
        sessions = self._fleet.sessions
        present = sessions.get(owner, name)
        if present is not None and present.is_open:
            raise ConflictError(
                f"the session {name!r} is open already",
                hint="narrow it with session:narrow, or choose another name",
                details={"session": name},
            )
        living, used = sessions.count(owner)
        if living >= MAX_OPEN:
            raise _too_many(f"{MAX_OPEN} sessions of {owner!r} are open", "close one of them first")
        if present is not None:
            return
        if used >= MAX_NAMES:
            hint = "open one of the closed sessions again under its name"
            raise _too_many(f"{owner!r} has used {MAX_NAMES:,} names for sessions", hint)
        if len(sessions) >= MAX_IN_ALL and owner != OPERATOR_ID:
            message = f"there are {MAX_IN_ALL:,} sessions already"
            raise _too_many(message, "end agents that are done: their sessions go with them")


async def load_sessions(rows: PrincipalRows, fleet: Fleet) -> None:
    """Take over the sessions of the living. One that cannot be read is there, and closed."""
    gone = []
    for record in await rows.session_list():
        session, was_read = session_of(record)
        if not was_read:
            log.error("session_damaged", session=record.name, owner=record.owner)
        if has_its_owner(fleet, session, was_read=was_read):
            fleet.put_session(session)
        else:
            gone.append((record.owner, record.name))
    if gone:
        log.warning("sessions_without_owner_dropped", count=len(gone))
        await rows.session_remove(gone)


def record_of(session: Session) -> SessionRecord:
    """What the runtime knows, as the store keeps it."""
    return SessionRecord(session.owner, session.name, msgspec.msgpack.encode(session))


def _key_of(fleet: Fleet, owner: str) -> str:
    found = fleet.get(owner)
    return "" if found is None else found.public_key


def _check_size(session: Session) -> None:
    if len(session.steps) > MAX_STEPS:
        message = f"the session {session.name!r} was narrowed {MAX_STEPS} times"
        raise _too_many(message, "open another one that takes away all of it at once")
    size = len(msgspec.msgpack.encode(session.steps))
    if size > MAX_BYTES:
        raise TooLargeError(
            f"the steps of the session {session.name!r} have {size:,} bytes",
            hint=f"{MAX_BYTES:,} are the limit: name fewer tools, or patterns",
            details={"limit": MAX_BYTES, "size": size},
        )


def _too_many(message: str, hint: str) -> LimitError:
    return LimitError(message, hint=hint, details={"limit": "sessions", "retry_after": None})
