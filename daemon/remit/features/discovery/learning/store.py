"""What use has taught, in SQLite."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import anyio
import msgspec
import structlog

from remit.errors import StoreError
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.lessons import Lesson
from remit.kernel.store.rows import Rows, check_text
from remit.model.event import Service

log = structlog.get_logger()
_WRITE_SECONDS = 2.0
_DECODER = msgspec.json.Decoder(Lesson)

_PUT = """
INSERT INTO lesson (tenant, name, body) VALUES (?, ?, ?)
ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body
"""


class LessonRows(Rows):
    """What use has taught, each lesson with a name and a body that means nothing here."""

    async def lesson_write(
        self, tenant: str, put: Mapping[str, bytes], removed: Sequence[str]
    ) -> None:
        """Keep and forget lessons of a tenant, all at once."""
        for name in (tenant, *put, *removed):
            check_text(name, "$.name")
        gone = [(tenant, name) for name in removed]
        kept = [(tenant, name, body) for name, body in put.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM lesson WHERE tenant = ? AND name = ?", gone)
            connection.executemany(_PUT, kept)

        await self.database.write(write)

    async def lesson_list(self, tenant: str) -> dict[str, bytes]:
        """All lessons of a tenant, by name."""
        query = "SELECT name, body FROM lesson WHERE tenant = ? ORDER BY name"
        return await self.database.read(
            lambda connection: dict(connection.execute(query, (tenant,)))
        )


class LessonKeeper(Service):
    """Keeps the lessons of a tenant on disk."""

    def __init__(self, rows: LessonRows, tenant: str, experience: Experience) -> None:
        self._rows = rows
        self._tenant = tenant
        self._experience = experience
        self._lock: anyio.Lock | None = None
        self._outdated: list[str] = []

    async def load(self, lives: Callable[[str], bool]) -> None:
        """Begin with what earlier runs learned; a lesson that cannot be read is left out."""
        found = []
        for name, body in (await self._rows.lesson_list(self._tenant)).items():
            try:
                lesson = _DECODER.decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            found.append(lesson)
            if name != _row_name(lesson):  # kept by an earlier version, which named it otherwise
                self._outdated.append(name)
        self._experience.load(found, lives, rewrite=bool(self._outdated))

    async def write(self) -> None:
        """Write down what was learned since the last time; what cannot be written waits.

        Raises:
            StoreError: it could not be written.
        """
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            put, removed = self._experience.take_changes()
            if not put and not removed and not self._outdated:
                return
            names = [*self._outdated, *map(_row_name, removed)]
            bodies = {_row_name(lesson): msgspec.json.encode(lesson) for lesson in put}
            try:
                await self._rows.lesson_write(self._tenant, bodies, names)
                self._outdated = []
            except StoreError:
                self._experience.give_back(put, removed)
                raise

    async def keep(self) -> None:
        """Write lessons from time to time until cancelled, and once more then."""
        try:
            while True:
                await anyio.sleep(_WRITE_SECONDS)
                try:
                    await self.write()
                except StoreError as error:
                    log.warning("lessons_not_written", problem=str(error))
        finally:
            with anyio.move_on_after(_WRITE_SECONDS, shield=True):
                await self.write()


def _row_name(lesson: Lesson) -> str:
    return blake2b(msgspec.json.encode(lesson.key), digest_size=16).hexdigest()
