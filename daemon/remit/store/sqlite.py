"""The store of a daemon on one machine: an SQLite file."""

from remit.store.sqlite_agents import SqliteAgents
from remit.store.sqlite_audit import SqliteAudit
from remit.store.sqlite_keys import SqliteKeys
from remit.store.sqlite_mail import SqliteMail
from remit.store.sqlite_reviews import SqliteBlobs, SqliteReviews
from remit.store.sqlite_state import SqliteState


class SqliteStore(
    SqliteState, SqliteKeys, SqliteAgents, SqliteMail, SqliteAudit, SqliteReviews, SqliteBlobs
):
    """Keeps the contract of `Store` in the file at `path`, which is made when it is missing.

    One process at a time: the lock of the state directory sees to that.
    """
