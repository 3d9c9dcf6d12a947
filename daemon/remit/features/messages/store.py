"""Messages for agents that are away, in SQLite."""

import sqlite3

import msgspec

from remit.errors import LimitError
from remit.kernel.store.rows import (
    PAGE_BYTES,
    PAGE_LIMIT,
    Rows,
    check_json,
    check_limit,
    check_text,
    check_time,
    cut,
)
from remit.model.event import MAX_WAITING_BYTES

Connection = sqlite3.Connection

_LONGEST_RETRY = 60.0
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
