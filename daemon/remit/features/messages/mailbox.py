"""Messages from one agent to another; one that is away finds them when it is back.

Each message is handed over once or never. One that was sent while the other agent was away waits in
the store, bounded in number and time, and survives a restart.
"""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import structlog

from remit.config.settings.table import Settings
from remit.errors import LimitError, StoreError
from remit.kernel.authority.revision import Authority
from remit.kernel.bus.delivery import Delivery
from remit.kernel.dispatch.context import Kernel
from remit.kernel.feature import Setup, Startup
from remit.kernel.store.rows import (
    PAGE_BYTES,
    PAGE_LIMIT,
    Rows,
    check_json,
    check_limit,
    check_text,
    check_time,
    cut,
    shown_value,
)
from remit.model.event import Service

log = structlog.get_logger()
Connection = sqlite3.Connection

DIRECT_EVENT = "message:direct"
"""The event that carries a message from one agent to another."""
MESSAGE_BYTES = 65_536
MAX_WAITING = 100
MAX_WAITING_BYTES = 2 << 20
"""Of all messages that wait for one agent."""
KEEP_SECONDS = 24 * 3600.0
_LONGEST_RETRY = 60.0
_EXPIRY_SECONDS = 600.0
_WAITING = """
SELECT count(*), min(expires_at), sum(length(message)) FROM mail
WHERE recipient = ? AND expires_at > ?
"""
_INSERT = """
INSERT INTO mail (recipient, sender, message, sent_at, expires_at) VALUES (?, ?, ?, ?, ?)
"""
_SELECT = """
SELECT id, recipient, sender, message, sent_at, expires_at FROM mail
WHERE recipient = ? ORDER BY id LIMIT ?
"""


class Mail(msgspec.Struct, frozen=True):
    """A message for an agent that was away; `message` is JSON."""

    id: int
    to: str
    sender: str
    message: bytes
    sent_at: float
    expires_at: float


class MailRows(Rows):
    """Messages for agents that are away, each given out once or never.

    A caller that is cancelled in the middle of `mail_take` loses what it took: shield it.
    """

    async def mail_add(
        self, to: str, message: bytes, sender: str, expires_at: float,
        *, limit: int, max_bytes: int = MAX_WAITING_BYTES,
    ) -> int:  # fmt: skip
        """Keep a message, which is JSON, for `to`; answers its id, which grows.

        Raises:
            LimitError: `limit` living messages wait for `to` already, or with this one they would
                have more than `max_bytes`.
            InvalidDataError: the message is not JSON.
        """
        _check_mail(to, message, sender, expires_at)
        now = self.database.clock()

        def write(connection: Connection) -> int:
            waiting, first, size = connection.execute(_WAITING, (to, now)).fetchone()
            if waiting >= limit or (size or 0) + len(message) > max_bytes:
                raise _mailbox_full(to, limit, max_bytes, expires_in=(first or now) - now)
            row = (to, sender, message, now, expires_at)
            return connection.execute(_INSERT, row).lastrowid or 0

        return await self.database.write(write)

    async def mail_take(
        self, to: str, *, now: float, limit: int = PAGE_LIMIT, max_bytes: int = PAGE_BYTES
    ) -> tuple[Mail, ...]:
        """Take the oldest messages out, without those that expired; empty when none wait.

        Answers at most `limit` messages, and fewer when they would outgrow `max_bytes`: ask again
        until nothing comes.
        """
        check_text(to, "$.to")
        check_limit(limit)
        check_time(now, "$.now")

        def write(connection: Connection) -> tuple[Mail, ...]:
            connection.execute(
                "DELETE FROM mail WHERE recipient = ? AND expires_at <= ?", (to, now)
            )
            found = (Mail(*row) for row in connection.execute(_SELECT, (to, limit)))
            taken, _ = cut(found, limit, max_bytes, lambda mail: len(mail.message))
            if taken:
                # They are the oldest, so all up to the last of them go and nothing else does.
                connection.execute(
                    "DELETE FROM mail WHERE recipient = ? AND id <= ?", (to, taken[-1].id)
                )
            return tuple(taken)

        return await self.database.write(write)

    async def mail_count(self, to: str) -> int:
        """How many living messages wait for `to`."""
        check_text(to, "$.to")
        where = (to, self.database.clock())
        return await self.database.read(
            lambda connection: int(connection.execute(_WAITING, where).fetchone()[0])
        )

    async def mail_expire(self, now: float) -> int:
        """Drop every message that expired by `now`; tells how many."""
        check_time(now, "$.now")
        query = "DELETE FROM mail WHERE expires_at <= ?"
        return await self.database.write(
            lambda connection: connection.execute(query, (now,)).rowcount
        )


def _check_mail(to: str, message: bytes, sender: str, expires_at: float) -> None:
    """Refuse a message that could not be kept or read."""
    check_text(to, "$.to")
    check_text(sender, "$.sender")
    check_time(expires_at, "$.expires_at")
    check_json(message, "$.message")


def _mailbox_full(to: str, limit: int, max_bytes: int, *, expires_in: float) -> LimitError:
    """The refusal of one message too many; the first place is free after `expires_in` seconds."""
    return LimitError(
        f"{limit} messages wait for {to!r} already, or {max_bytes:,} bytes with this one",
        hint="wait until it is back, or until messages expire",
        details={
            "limit": limit,
            "max_bytes": max_bytes,
            "retry_after": min(expires_in, _LONGEST_RETRY),
        },
    )


class Mailbox(Service):
    """Knows who is connected, and hands over what waits for those who come back."""

    def __init__(
        self,
        store: MailRows,
        delivery: Delivery,
        authority: Authority,
        *,
        wall_clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._delivery = delivery
        self._authority = authority
        self._clock = wall_clock
        self._connected: dict[str, int] = {}
        self._due: dict[str, None] = {}
        self._news = anyio.Event()
        self._busy: set[str] = set()

    def arrived(self, name: str) -> None:
        """A connection of this principal has spoken for the first time."""
        self._connected[name] = self._connected.get(name, 0) + 1
        self._due[name] = None
        self._news.set()

    def gone(self, name: str) -> None:
        """A connection of this principal has closed."""
        left = self._connected.get(name, 0) - 1
        if left > 0:
            self._connected[name] = left
        else:
            self._connected.pop(name, None)
            self._due.pop(name, None)

    def connections(self, name: str) -> int:
        """How many connections a principal has."""
        return self._connected.get(name, 0)

    def may_receive(self, name: str) -> bool:
        """Tell whether a principal may be told messages at all."""
        principal = self._authority.fleet.principal(name)
        return principal is not None and DIRECT_EVENT in self._authority.grant(principal).events

    async def send(self, to: str, message: Any, sender: str) -> int:
        """Hand a message over, or keep it; answers on how many connections it was handed over.

        Raises:
            LimitError: too many messages wait already.
            StoreError: it could not be kept.
        """
        told = self._tell(to, message, sender)
        if told:
            return told
        expires_at = self._clock() + KEEP_SECONDS
        await self._store.mail_add(
            to, msgspec.json.encode(message), sender, expires_at, limit=self._room(to)
        )
        if self.connections(to):  # it came back while the message was being kept
            self._due[to] = None
            self._news.set()
        return 0

    async def deliver_waiting(self, name: str) -> int:
        """Hand over all that waits for a principal; answers how many messages."""
        if name in self._busy or not self.may_receive(name):
            return 0
        self._busy.add(name)
        told = 0
        try:
            # Shielded: what was taken out of the store and not handed over would be lost.
            with anyio.CancelScope(shield=True):
                while mails := await self._store.mail_take(name, now=self._clock()):
                    for at, mail in enumerate(mails):
                        if not self._hand_over(mail):
                            await self._put_back(mails[at:])
                            return told
                        told += 1
        finally:
            self._busy.discard(name)
        return told

    @asynccontextmanager
    async def delivering(self) -> AsyncGenerator[None]:
        """Hand over in the background while the block runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.run)
            yield
            tasks.cancel_scope.cancel()

    async def run(self) -> None:
        """Deliver to those who come back, and drop what expired, until cancelled."""
        while True:
            with anyio.move_on_after(_EXPIRY_SECONDS) as quiet:
                await self._news.wait()
            self._news = anyio.Event()
            try:
                if quiet.cancelled_caught:
                    await self._store.mail_expire(self._clock())
                while self._due:
                    name = next(iter(self._due))
                    del self._due[name]
                    await self.deliver_waiting(name)
            except StoreError as error:
                log.warning("mail_not_delivered", problem=error.message)
            except Exception:
                log.exception("mail_not_delivered")

    def _room(self, to: str) -> int:
        principal = self._authority.fleet.principal(to)
        if principal is None:
            return 0
        limit = self._authority.grant(principal).limits.max_queue
        return MAX_WAITING if limit is None else min(limit, MAX_WAITING)

    def _hand_over(self, mail: Mail) -> int:
        return self._tell(mail.to, shown_value(mail.message), mail.sender)

    def _tell(self, to: str, message: Any, sender: str) -> int:
        data = {"from": sender, "message": message}
        return self._delivery.tell(to, DIRECT_EVENT, data, sender)

    async def _put_back(self, mails: tuple[Mail, ...]) -> None:
        for mail in mails:
            await self._store.mail_add(
                mail.to, mail.message, mail.sender, mail.expires_at,
                limit=2 * MAX_WAITING, max_bytes=2 * MAX_WAITING_BYTES,
            )  # fmt: skip


def _build(kernel: Kernel, _startup: Startup) -> None:
    clock = kernel.lapsing_clock
    mailbox = Mailbox(
        MailRows(kernel.database), kernel.delivery, kernel.authority, wall_clock=clock
    )
    kernel.on_arrival.append(mailbox.arrived)
    kernel.on_departure.append(mailbox.gone)
    kernel.provide(mailbox)


@asynccontextmanager
async def _run(kernel: Kernel, _settings: Settings) -> AsyncGenerator[None]:
    async with kernel.service(Mailbox).delivering():
        yield


SETUP = Setup(build=_build, run=_run)
