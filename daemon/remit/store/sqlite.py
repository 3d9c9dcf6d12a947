"""The store of a daemon on one machine: an SQLite file."""

from remit.store.sqlite_agents import SqliteAgents
from remit.store.sqlite_audit import SqliteAudit
from remit.store.sqlite_bills import SqliteBills
from remit.store.sqlite_ended import SqliteEnded
from remit.store.sqlite_files import SqliteFiles
from remit.store.sqlite_keys import SqliteKeys
from remit.store.sqlite_lessons import SqliteLessons
from remit.store.sqlite_made import SqliteMade
from remit.store.sqlite_mail import SqliteMail
from remit.store.sqlite_names import SqliteNames
from remit.store.sqlite_reviews import SqliteBlobs, SqliteReviews
from remit.store.sqlite_sessions import SqliteSessions
from remit.store.sqlite_state import SqliteState
from remit.store.sqlite_tokens import SqliteTokens


class SqliteStore(
    SqliteState,
    SqliteKeys,
    SqliteAgents,
    SqliteEnded,
    SqliteSessions,
    SqliteFiles,
    SqliteLessons,
    SqliteMade,
    SqliteMail,
    SqliteAudit,
    SqliteReviews,
    SqliteBlobs,
    SqliteTokens,
    SqliteNames,
    SqliteBills,
):
    """Keeps the contract of `Store` in the file at `path`, which is made when it is missing.

    One process at a time: the lock of the state directory sees to that.
    """
