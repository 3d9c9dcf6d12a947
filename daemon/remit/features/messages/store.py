"""Messages for agents that are away, in SQLite."""

import sqlite3

from remit.kernel.store.checks import check_text
from remit.kernel.store.database import Database
from remit.kernel.store.pages import check_limit, cut
from remit.kernel.store.protocol import PAGE_BYTES, PAGE_LIMIT
from remit.kernel.store.records import Mail
from remit.kernel.store.row_checks import check_mail, check_time, mailbox_full
from remit.model.event import MAX_WAITING_BYTES

Connection = sqlite3.Connection

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


class SqliteMail(Database):
    """See `MailStore` for what each method promises."""

    async def mail_add(
        self, to: str, message: bytes, sender: str, expires_at: float,
        *, limit: int, max_bytes: int = MAX_WAITING_BYTES,
    ) -> int:  # fmt: skip
        """Keep a message for `to`; answers its id."""
        check_mail(to, message, sender, expires_at)
        now = self.clock()

        def write(connection: Connection) -> int:
            waiting, first, size = connection.execute(_WAITING, (to, now)).fetchone()
            if waiting >= limit or (size or 0) + len(message) > max_bytes:
                raise mailbox_full(to, limit, max_bytes, expires_in=(first or now) - now)
            row = (to, sender, message, now, expires_at)
            return connection.execute(_INSERT, row).lastrowid or 0

        return await self.write(write)

    async def mail_take(
        self, to: str, *, now: float, limit: int = PAGE_LIMIT, max_bytes: int = PAGE_BYTES
    ) -> tuple[Mail, ...]:
        """Take the oldest messages out, without those that expired."""
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

        return await self.write(write)

    async def mail_count(self, to: str) -> int:
        """How many living messages wait for `to`."""
        check_text(to, "$.to")
        where = (to, self.clock())
        return await self.read(
            lambda connection: int(connection.execute(_WAITING, where).fetchone()[0])
        )

    async def mail_expire(self, now: float) -> int:
        """Drop every message that expired by `now`; tells how many."""
        check_time(now, "$.now")
        query = "DELETE FROM mail WHERE expires_at <= ?"
        return await self.write(lambda connection: connection.execute(query, (now,)).rowcount)
