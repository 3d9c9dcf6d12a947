"""What a store holds that decides, read at one moment and without a daemon.

Read-only: a daemon may be writing meanwhile. Rows come as they are stored;
`kernel/authority/standing.py` makes sense of them.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from remit.kernel.store.disk import shown_text, store_error
from remit.kernel.store.records import AgentRecord, ClientKey, Review, SessionRecord

_LOCK_WAIT = 2.0
_REVIEWS = """
SELECT id, kind, subject, requested_by, requested_at, expires_at, payload,
    status, decided_by, decided_at, note
FROM review WHERE kind = 'capability' ORDER BY position
"""
_AGENTS = """
SELECT id, parent, position, profile, public_key, token_hash, created_at, body
FROM agent ORDER BY position
"""
_KEYS = """
SELECT name, public_key, profile, created_at, revoked_at FROM client_key WHERE revoked_at IS NULL
"""


class Snapshot(msgspec.Struct, frozen=True):
    """The rows behind every decision, beside the definition files."""

    reviews: tuple[Review, ...] = ()
    made: tuple[bytes, ...] = ()
    keys: tuple[ClientKey, ...] = ()
    agents: tuple[AgentRecord, ...] = ()
    sessions: tuple[SessionRecord, ...] = ()
    names: tuple[tuple[str, str, str], ...] = ()
    """Whom which event was shown to under which tool name."""
    last_good: bytes | None = None
    """The definition files in force, with their revision."""


def read_snapshot(database: Path, last_good: str) -> Snapshot:
    """Read a store; one that is not there holds nothing.

    Raises:
        StoreError: it is there and cannot be read: then nobody knows what was decided.
    """
    if not database.exists():
        return Snapshot()
    try:
        with _opened(database) as connection:
            connection.execute("BEGIN")  # every table of one moment
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}

            def rows(table: str, query: str) -> Iterator[tuple[Any, ...]]:
                return iter(connection.execute(query) if table in tables else ())

            kept = rows("blob", f"SELECT data FROM blob WHERE name = '{last_good}'")  # noqa: S608
            return Snapshot(
                tuple(Review(*row) for row in rows("review", _REVIEWS)),
                tuple(
                    bytes(body)
                    for (body,) in rows("made_capability", "SELECT body FROM made_capability")
                ),
                tuple(ClientKey(*row) for row in rows("client_key", _KEYS)),
                tuple(AgentRecord(*row) for row in rows("agent", _AGENTS)),
                tuple(
                    SessionRecord(*row)
                    for row in rows("session", "SELECT owner, name, body FROM session")
                ),
                tuple(
                    (owner, event, name)
                    for owner, event, name in rows(
                        "tool_name", "SELECT owner, event, name FROM tool_name"
                    )
                ),
                next((bytes(data) for (data,) in kept), None),
            )
    except sqlite3.Error as error:
        raise store_error(str(database), error) from error


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    # Without a log beside it nobody writes, and a file that is only read needs no lock: so a home
    # that is mounted read-only can be asked too.
    idle = not database.with_name(f"{database.name}-wal").exists()
    mode = "mode=ro&immutable=1" if idle else "mode=ro"
    address = f"{database.absolute().as_uri()}?{mode}"
    with closing(
        sqlite3.connect(address, uri=True, timeout=_LOCK_WAIT, isolation_level=None)
    ) as connection:
        connection.text_factory = shown_text  # as the daemon reads it
        yield connection
