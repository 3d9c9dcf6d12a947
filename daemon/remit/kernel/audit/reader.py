"""The audit of a home, read from its files with or without a daemon. Nothing is changed."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remit.errors import NotFoundError, StoreError
from remit.kernel.audit.table import AuditTable
from remit.kernel.store.audit_chain import ChainWalk
from remit.kernel.store.audit_head import Head, HeadFile, head_problem, read_head, told
from remit.kernel.store.records import AuditHead, AuditVerdict


class AuditReader:
    """The table and the head as they lie there; its methods block."""

    def __init__(self, database: Path, head: HeadFile) -> None:
        """Name the files.

        Raises:
            NotFoundError: there is no database.
        """
        if not database.is_file():
            raise NotFoundError(
                f"{database}: there is no store here",
                hint="no daemon has served from this home; choose another with --home",
            )
        self._database = database
        self._head = head

    async def audit_head(self) -> AuditHead:
        """What the head tells about the table as it is now."""
        # The head first: a daemon that runs writes it last.
        found, problem = read_head(self._head)
        if found is None:
            problem = problem or f"{self._head.path} is missing: what the log must end with"
        try:
            with self._open() as table:
                if found is not None:
                    problem = found.problem or head_problem(found, table)
        except (sqlite3.Error, StoreError):
            pass  # the table says so itself
        return told(found or Head(), problem)

    async def audit_verify(self, *, expected_head: str | None = None) -> AuditVerdict:
        """Prove the chain from its anchor to its end, or name the first broken row."""
        try:
            with self._open() as table:
                end, _ = table.newest()
                walk = ChainWalk(*table.anchor(), expected_head=expected_head)
                for rows in table.chunks(after=walk.seq, end=end):
                    if not walk.walk(rows):
                        break
                return walk.verdict(end)
        except (sqlite3.Error, StoreError) as error:
            problem = f"the table of the audit cannot be read: {error}"
            return AuditVerdict(ok=False, rows=0, first_bad=None, problem=problem, head="")

    @contextmanager
    def _open(self) -> Iterator[AuditTable]:
        uri = f"{self._database.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            connection.execute("BEGIN")  # one moment, whatever a daemon writes meanwhile
            yield AuditTable(connection)
        finally:
            connection.close()
