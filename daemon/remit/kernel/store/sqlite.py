"""The store of a daemon on one machine: an SQLite file."""

from remit.features.agents.store import SqliteAgents, SqliteEnded, SqliteKeys, SqliteTokens
from remit.features.bill.store import SqliteBills
from remit.features.capabilities.store import SqliteMade
from remit.features.discovery.store import SqliteLessons
from remit.features.files.store import SqliteFiles
from remit.features.messages.store import SqliteMail
from remit.features.reviews.store import SqliteBlobs, SqliteReviews
from remit.features.sessions.store import SqliteSessions
from remit.features.state.store import SqliteState
from remit.features.tools.store import SqliteNames
from remit.kernel.audit.store import SqliteAudit


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
