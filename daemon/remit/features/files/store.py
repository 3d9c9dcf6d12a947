"""Files of sessions in SQLite."""

import sqlite3
from collections.abc import Iterable

import msgspec

from remit.errors import ConflictError, InvalidDataError, LimitError, TooLargeError
from remit.kernel.authority.store import check_session_key
from remit.kernel.store.rows import MAX_VALUE_BYTES, Rows, after_prefix, check_state_key
from remit.model.event import Service
from remit.model.grant import SessionKey
from remit.model.paths import inside, parents

Connection = sqlite3.Connection

FILE_PAGE_BYTES = 1024 * 1024
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


class FileLimits(Service, msgspec.Struct, frozen=True, kw_only=True):
    """The quota of one session; `areas` is how many sessions of one owner may keep files."""

    size: int = 524_288
    count: int = 10_000
    total: int = 33_554_432
    areas: int = 50


class FileInfo(msgspec.Struct, frozen=True):
    """A file of a session without its content."""

    path: str
    size: int
    created_at: float
    updated_at: float


class StoredFile(msgspec.Struct, frozen=True):
    """A file of a session."""

    info: FileInfo
    content: bytes


class FileRows(Rows):
    """The files of sessions. Directories are nothing but the beginnings of paths.

    The files of an agent or a client go when it does.
    """

    async def file_put(
        self, session: SessionKey, path: str, content: bytes, *, limits: FileLimits
    ) -> tuple[FileInfo, bool]:
        """Keep a file, in the place of the one of that path; tells whether it is new.

        Raises:
            ConflictError: the path is a directory, or leads through a file.
            InvalidDataError: the path cannot be one.
            LimitError: the session, or its owner, keeps too much already.
            TooLargeError: the file is larger than the limit.
        """
        _check_file(session, path, content, limits)
        now = self.database.clock()
        return await self.database.write(
            lambda connection: _put(connection, session, path, content, limits, now)
        )

    async def file_get(self, session: SessionKey, path: str) -> StoredFile | None:
        """The file of that path, or None."""
        check_session_key(session)
        _check_path(path)

        def read(connection: Connection) -> StoredFile | None:
            area = _area(connection, session)
            query = f"SELECT {_INFO}, content FROM file WHERE area = ? AND path = ?"  # noqa: S608
            row = connection.execute(query, (area[0], path)).fetchone() if area else None
            return _stored(row) if row else None

        return await self.database.read(read)

    async def file_list(self, session: SessionKey, prefix: str = "/") -> tuple[FileInfo, ...]:
        """All files whose path starts with `prefix`, by path; their number is limited."""
        check_session_key(session)
        _check_path(prefix)

        def read(connection: Connection) -> tuple[FileInfo, ...]:
            area = _area(connection, session)
            query = f"SELECT {_INFO} FROM file WHERE {_UNDER} ORDER BY path"  # noqa: S608
            where = (area[0], *_range(prefix)) if area else (0, *_BELOW_NOTHING)
            return tuple(FileInfo(*row) for row in connection.execute(query, where))

        return await self.database.read(read)

    async def file_page(
        self, session: SessionKey, *, after: str = "", max_bytes: int = FILE_PAGE_BYTES
    ) -> tuple[StoredFile, ...]:
        """Files from behind `after`, by path, until they outgrow `max_bytes`; at least one."""
        check_session_key(session)
        if after:
            _check_path(after)
        return await self.database.read(
            lambda connection: _page(connection, session, after, max_bytes)
        )

    async def file_remove(self, session: SessionKey, path: str, *, recursive: bool = False) -> int:
        """Remove the file of that path, and with `recursive` all below it; tells how many."""
        check_session_key(session)
        _check_path(path)
        return await self.database.write(
            lambda connection: _remove(connection, session, path, recursive=recursive)
        )


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
    _check_areas(limits, 1 + areas)
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
    _check_quota(limits, files, size)
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


def _check_path(path: str) -> None:
    """Refuse a path that no store can keep; which paths make sense is the handlers' business."""
    check_state_key(path)
    if not path.startswith("/"):
        raise InvalidDataError(
            "a path starts with '/'", hint="as in '/docs/readme.txt'", details={"path": "$.path"}
        )


def _check_file(session: SessionKey, path: str, content: bytes, limits: FileLimits) -> None:
    """Refuse a file that could not be kept or found."""
    check_session_key(session)
    _check_path(path)
    if path.endswith("/"):
        raise is_directory(path)
    largest = min(limits.size, MAX_VALUE_BYTES)
    if len(content) > largest:
        raise TooLargeError(
            f"the file has {len(content):,} bytes; {largest:,} are the limit",
            hint="split it into more files",
            details={"limit": largest, "size": len(content)},
        )


def _check_quota(limits: FileLimits, files: int, size: int) -> None:
    """Refuse what would be too much for one session."""
    if files > limits.count:
        raise _too_much(f"{limits.count:,} files", "files")
    if size > limits.total:
        raise _too_much(f"{limits.total:,} bytes", "bytes")


def _check_areas(limits: FileLimits, areas: int) -> None:
    """Refuse files in one session too many."""
    if areas > limits.areas:
        raise LimitError(
            f"{limits.areas:,} sessions of one owner keep files already",
            hint="delete the files of sessions that are done, or close them",
            details={"limit": "sessions", "retry_after": None},
        )


def check_way(path: str, files: Iterable[str]) -> None:
    """Refuse a path that leads through one of these files, which lie above it."""
    for file in files:
        raise ConflictError(
            f"{file!r} is a file, so nothing can lie below it",
            hint="choose another path, or delete that file first",
            details={"path": file},
        )


def is_directory(path: str) -> ConflictError:
    """The refusal of a file where a directory is."""
    return ConflictError(
        f"{path!r} is a directory",
        hint="choose a path inside of it, or another name",
        details={"path": path},
    )


def _too_much(what: str, limit: str) -> LimitError:
    return LimitError(
        f"the session may keep {what}, and this would be more",
        hint="delete files that are done",
        details={"limit": limit, "retry_after": None},
    )
