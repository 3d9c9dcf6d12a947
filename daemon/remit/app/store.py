"""The store of an installation: the rows of the kernel and of every feature over one database."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from remit.features.agents.store import TokenRows
from remit.features.bill.store import BillRows
from remit.features.capabilities.store import MadeRows
from remit.features.discovery.store import LessonRows
from remit.features.files.store import FileRows
from remit.features.messages.store import MailRows
from remit.features.reviews.store import ReviewRows
from remit.features.state.store import StateRows
from remit.features.tools.store import NameRows
from remit.kernel.audit.head import HeadKeeper
from remit.kernel.audit.store import AuditRows
from remit.kernel.authority.store import PrincipalRows, SessionRows
from remit.kernel.store.blobs import BlobRows
from remit.kernel.store.database import Database
from remit.kernel.store.reserve import Reserve
from remit.kernel.store.schema import Migration


class SqliteStore(
    AuditRows,
    StateRows,
    PrincipalRows,
    SessionRows,
    FileRows,
    LessonRows,
    MadeRows,
    MailRows,
    ReviewRows,
    BlobRows,
    TokenRows,
    NameRows,
    BillRows,
):
    """All rows in the file at a path, which is made when it is missing.

    One process at a time: the lock of the state directory sees to that.
    """

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], float] = time.time,
        lock_wait: float = 2.0,
        reserve: Reserve | None = None,
        head: HeadKeeper | None = None,
        migrations: Sequence[Migration] | None = None,
    ) -> None:
        """Name the file; see `Database`."""
        database = Database(
            path, clock=clock, lock_wait=lock_wait, reserve=reserve, migrations=migrations
        )
        super().__init__(database, head=head)

    @property
    def is_full(self) -> bool:
        """Tell whether the disk is full, so that only what is essential is written."""
        return self.database.is_full

    async def __aenter__(self) -> Self:
        await self.database.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.database.__aexit__(exc_type, exc, traceback)
