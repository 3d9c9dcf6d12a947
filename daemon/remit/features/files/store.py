"""Files of sessions in SQLite."""

import sqlite3

from remit.kernel.store.checks import after_prefix
from remit.kernel.store.database import Database
from remit.kernel.store.file_protocol import FILE_PAGE_BYTES
from remit.kernel.store.records import FileInfo, FileLimits, StoredFile
from remit.kernel.store.row_checks import (
    check_areas,
    check_file,
    check_path,
    check_quota,
    check_session_key,
    check_way,
    is_directory,
)
from remit.model.grant import SessionKey
from remit.model.paths import inside, parents

Connection = sqlite3.Connection

_AREA = "SELECT id, files, bytes FROM file_area WHERE owner = ? AND owner_key = ? AND session = ?"
_NEW_AREA = """
INSERT INTO file_area (owner, owner_key, session, files, bytes) VALUES (?, ?, ?, 0, 0)
"""
_INFO = "path, size, created_at, updated_at"
_PUT = """
INSERT INTO file (area, path, size, created_at, updated_at, content) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (area, path) DO UPDATE SET
    size = excluded.size, updated_at = excluded.updated_at, content = excluded.content
"""
_UNDER = "area = ? AND path >= ? AND path < ?"
_BELOW_NOTHING = ("", "")
"""A range without any path in it."""


class SqliteFiles(Database):
    """See `FileStore` for what each method promises."""

    async def file_put(
        self, session: SessionKey, path: str, content: bytes, *, limits: FileLimits
    ) -> tuple[FileInfo, bool]:
        """Keep a file, in the place of the one of that path; tells whether it is new."""
        check_file(session, path, content, limits)
        now = self.clock()
        return await self.write(
            lambda connection: _put(connection, session, path, content, limits, now)
        )

    async def file_get(self, session: SessionKey, path: str) -> StoredFile | None:
        """The file of that path, or None."""
        check_session_key(session)
        check_path(path)

        def read(connection: Connection) -> StoredFile | None:
            area = _area(connection, session)
            query = f"SELECT {_INFO}, content FROM file WHERE area = ? AND path = ?"  # noqa: S608
            row = connection.execute(query, (area[0], path)).fetchone() if area else None
            return _stored(row) if row else None

        return await self.read(read)

    async def file_list(self, session: SessionKey, prefix: str = "/") -> tuple[FileInfo, ...]:
        """All files whose path starts with `prefix`, by path."""
        check_session_key(session)
        check_path(prefix)

        def read(connection: Connection) -> tuple[FileInfo, ...]:
            area = _area(connection, session)
            query = f"SELECT {_INFO} FROM file WHERE {_UNDER} ORDER BY path"  # noqa: S608
            where = (area[0], *_range(prefix)) if area else (0, *_BELOW_NOTHING)
            return tuple(FileInfo(*row) for row in connection.execute(query, where))

        return await self.read(read)

    async def file_page(
        self, session: SessionKey, *, after: str = "", max_bytes: int = FILE_PAGE_BYTES
    ) -> tuple[StoredFile, ...]:
        """Files from behind `after`, by path, until they outgrow `max_bytes`."""
        check_session_key(session)
        if after:
            check_path(after)
        return await self.read(lambda connection: _page(connection, session, after, max_bytes))

    async def file_remove(self, session: SessionKey, path: str, *, recursive: bool = False) -> int:
        """Remove the file of that path, and with `recursive` all below it; tells how many."""
        check_session_key(session)
        check_path(path)
        return await self.write(
            lambda connection: _remove(connection, session, path, recursive=recursive)
        )

    async def file_clear(self, session: SessionKey) -> int:
        """Remove all files of a session; tells how many."""
        check_session_key(session)

        def write(connection: Connection) -> int:
            area = _area(connection, session)
            if area is None:
                return 0
            connection.execute("DELETE FROM file_area WHERE id = ?", (area[0],))
            return area[1]

        return await self.write(write)


def forget_files(connection: Connection, owner: str) -> None:
    """Remove the files of somebody who is gone, and of all who had that name before."""
    connection.execute("DELETE FROM file_area WHERE owner = ?", (owner,))


def _area(connection: Connection, session: SessionKey) -> tuple[int, int, int] | None:
    """The id of a session's files, their number and their bytes; None when there are none."""
    key = (session.owner, session.owner_key, session.name)
    row: tuple[int, int, int] | None = connection.execute(_AREA, key).fetchone()
    return row


def _make_area(
    connection: Connection, session: SessionKey, limits: FileLimits
) -> tuple[int, int, int]:
    query = "SELECT count(*) FROM file_area WHERE owner = ? AND owner_key = ?"
    (areas,) = connection.execute(query, (session.owner, session.owner_key)).fetchone()
    check_areas(limits, 1 + areas)
    key = (session.owner, session.owner_key, session.name)
    made = connection.execute(_NEW_AREA, key).lastrowid
    assert made is not None  # noqa: S101 - an INSERT of one row always has one
    return made, 0, 0


def _put(
    connection: Connection,
    session: SessionKey,
    path: str,
    content: bytes,
    limits: FileLimits,
    now: float,
) -> tuple[FileInfo, bool]:
    found = _area(connection, session)
    if found is not None:
        _check_way(connection, found[0], path)
    area, files, size = found or _make_area(connection, session, limits)
    query = "SELECT size, created_at FROM file WHERE area = ? AND path = ?"
    before = connection.execute(query, (area, path)).fetchone()
    old_size, created_at = before or (0, now)
    files, size = files + (before is None), size + len(content) - old_size
    check_quota(limits, files, size)
    connection.execute(_PUT, (area, path, len(content), created_at, now, content))
    connection.execute(
        "UPDATE file_area SET files = ?, bytes = ? WHERE id = ?", (files, size, area)
    )
    return FileInfo(path, len(content), created_at, now), before is None


def _check_way(connection: Connection, area: int, path: str) -> None:
    above = parents(path)
    marks = ", ".join("?" * len(above))
    query = f"SELECT path FROM file WHERE area = ? AND path IN ({marks}) ORDER BY path"  # noqa: S608
    check_way(path, [found for (found,) in connection.execute(query, (area, *above))])
    query = f"SELECT 1 FROM file WHERE {_UNDER} LIMIT 1"  # noqa: S608
    if connection.execute(query, (area, *_range(inside(path)))).fetchone():
        raise is_directory(path)


def _page(
    connection: Connection, session: SessionKey, after: str, max_bytes: int
) -> tuple[StoredFile, ...]:
    area = _area(connection, session)
    if area is None:
        return ()
    query = f"SELECT {_INFO}, content FROM file WHERE area = ? AND path > ? ORDER BY path"  # noqa: S608
    page: list[StoredFile] = []
    for row in connection.execute(query, (area[0], after)):
        max_bytes -= row[1]
        if page and max_bytes < 0:
            break
        page.append(_stored(row))
    return tuple(page)


def _remove(connection: Connection, session: SessionKey, path: str, *, recursive: bool) -> int:
    area = _area(connection, session)
    if area is None:
        return 0
    below = _range(inside(path)) if recursive else _BELOW_NOTHING
    where = "area = ? AND (path = ? OR (path >= ? AND path < ?))"
    values = (area[0], path, *below)
    query = f"SELECT count(*), coalesce(sum(size), 0) FROM file WHERE {where}"  # noqa: S608
    files, size = connection.execute(query, values).fetchone()
    if files == area[1]:
        connection.execute("DELETE FROM file_area WHERE id = ?", (area[0],))
    else:
        connection.execute(f"DELETE FROM file WHERE {where}", values)  # noqa: S608
        connection.execute(
            "UPDATE file_area SET files = files - ?, bytes = bytes - ? WHERE id = ?",
            (files, size, area[0]),
        )
    return int(files)


def _range(prefix: str) -> tuple[str, str]:
    end = after_prefix(prefix)
    assert end is not None  # noqa: S101 - a path starts with '/', which has a sign behind it
    return prefix, end


def _stored(row: tuple[str, int, float, float, bytes]) -> StoredFile:
    return StoredFile(FileInfo(*row[:4]), row[4])
