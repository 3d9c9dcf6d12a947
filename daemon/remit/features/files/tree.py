"""The file system of one session: what was written there, and what capabilities mount into it.

A mount wins over what was written, so that no agent can hide what an operator shows. A file that is
mounted for writing is changed in the session only, and the definition stays what it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import msgspec

from remit.errors import ConflictError, NotFoundError
from remit.kernel.dispatch.context import Context
from remit.kernel.store.protocol import Store
from remit.kernel.store.records import FileInfo, FileLimits, StoredFile
from remit.kernel.store.row_checks import check_way, is_directory
from remit.model.capability import Mount
from remit.model.grant import SessionKey
from remit.model.names import did_you_mean
from remit.model.paths import ROOT, FilePath, inside, parents
from remit.policy.catalogue import mounts_of


class Entry(msgspec.Struct, frozen=True):
    """A file or directory as its session sees it; what is only mounted has no times."""

    path: str
    size: int
    read_only: bool = False
    created_at: float | None = None
    updated_at: float | None = None
    is_directory: bool = False

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


class SessionFiles:
    """Reads and changes the files of one session."""

    def __init__(
        self,
        store: Store,
        session: SessionKey,
        mounts: Mapping[str, Mount],
        limits: FileLimits,
    ) -> None:
        self._store = store
        self._session = session
        self._limits = limits
        self.mounts = mounts
        self._mount_folders = {above for path in mounts for above in parents(path)}

    @classmethod
    def of(cls, ctx: Context, session: SessionKey) -> Self:
        """Those that a request works on."""
        mounts = mounts_of(ctx.grant, ctx.catalogue.capabilities)
        return cls(ctx.kernel.store, session, mounts, ctx.services.file_limits)

    async def read(self, path: FilePath) -> bytes:
        """What is in a file.

        Raises:
            ConflictError: it is a directory.
            NotFoundError: it is not there.
        """
        mount = self.mounts.get(path)
        if mount is not None and mount.read_only:
            return mount.content
        stored = None if self._is_hidden(path) else await self._store.file_get(self._session, path)
        if stored is not None:
            return stored.content
        if mount is not None:
            return mount.content
        raise await self._not_a_file(path)

    async def under(self, directory: FilePath) -> list[Entry]:
        """All files in a directory and in those below it, by path."""
        prefix = inside(directory)
        written = await self._store.file_list(self._session, prefix)
        found = {path: self._mounted(path) for path in self.mounts if path.startswith(prefix)}
        found.update((info.path, _written(info)) for info in written if self.shows(info.path))
        return sorted(found.values(), key=lambda entry: entry.path)

    async def look(self, path: FilePath) -> Entry | None:
        """The file or directory of that path, or None."""
        stored = await self._store.file_get(self._session, path) if self.shows(path) else None
        if stored is not None:
            return _written(stored.info)
        if path in self.mounts:
            return self._mounted(path)
        entries = await self.under(path)
        return directory(path, entries) if entries or path == ROOT else None

    async def mounted(self) -> list[tuple[str, bytes]]:
        """The mounted files that nobody has changed in this session, with their content."""
        entries = await self.under(ROOT) if self.mounts else []
        paths = [entry.path for entry in entries if entry.updated_at is None]
        return [(path, self.mounts[path].content) for path in paths]

    async def write(self, path: FilePath, content: bytes) -> tuple[FileInfo, bool]:
        """Put a file in its place; tells whether it is new.

        Raises:
            ConflictError: it is read-only or a directory, or its path leads through a file.
            LimitError: the session keeps too much already.
            TooLargeError: the file is too large.
        """
        self._check_writable(path)
        check_way(path, (above for above in parents(path) if above in self.mounts))
        if path == ROOT or path in self._mount_folders:
            raise is_directory(path)
        info, is_new = await self._store.file_put(self._session, path, content, limits=self._limits)
        return info, is_new and path not in self.mounts

    async def remove(self, path: FilePath, *, recursive: bool) -> int:
        """Remove a file, or with `recursive` a directory; tells how many files went.

        Raises:
            ConflictError: it is mounted, or a directory that is not to go as a whole.
        """
        entries = await self.under(path)
        if entries and not recursive:
            raise ConflictError(
                f"{path!r} is a directory with {len(entries):,} files below it",
                hint="set 'recursive' to remove all of them",
                details={"path": path},
            )
        for entry in entries:
            self._check_removable(entry.path)
        self._check_removable(path)
        if self._is_hidden(path):
            return 0
        return await self._store.file_remove(self._session, path, recursive=recursive)

    async def page(self, after: str) -> tuple[StoredFile, ...]:
        """Some of what was written, from behind a path; nothing at the end."""
        return await self._store.file_page(self._session, after=after)

    def shows(self, path: str) -> bool:
        """Tell whether what was written under a path can be seen."""
        mount = self.mounts.get(path)
        return not self._is_hidden(path) and (mount is None or not mount.read_only)

    def _is_hidden(self, path: str) -> bool:
        """Tell whether a mount makes a path a directory, or takes a part of its way."""
        return path in self._mount_folders or any(above in self.mounts for above in parents(path))

    def _mounted(self, path: str) -> Entry:
        mount = self.mounts[path]
        return Entry(path, len(mount.content), mount.read_only)

    def _check_writable(self, path: str) -> None:
        mount = self.mounts.get(path)
        if mount is not None and mount.read_only:
            raise ConflictError(
                f"{path!r} is read-only",
                hint="it comes with a capability; write to another path",
                details={"path": path},
            )

    def _check_removable(self, path: str) -> None:
        if path in self.mounts:
            raise ConflictError(
                f"{path!r} comes with a capability and cannot be removed",
                hint="leave it where it is",
                details={"path": path},
            )

    async def _not_a_file(self, path: FilePath) -> ConflictError | NotFoundError:
        if path == ROOT or await self.under(path):
            return is_directory(path)
        beside = await self.under(FilePath(path.rpartition("/")[0] or ROOT))
        return not_there(path, (entry.path for entry in beside))


def not_there(path: str, known: Iterable[str]) -> NotFoundError:
    """The answer about what is not there; only paths of the same session are suggested."""
    hint = did_you_mean(path, known)
    return NotFoundError(f"there is no file {path!r}", hint=hint, details={"path": path})


def directory(path: str, entries: Sequence[Entry]) -> Entry:
    """A directory, told by all the files below it."""
    return Entry(
        path,
        sum(entry.size for entry in entries),
        bool(entries) and all(entry.read_only for entry in entries),
        min((e.created_at for e in entries if e.created_at is not None), default=None),
        max((e.updated_at for e in entries if e.updated_at is not None), default=None),
        is_directory=True,
    )


def children(path: str, entries: Sequence[Entry]) -> list[Entry]:
    """What lies directly in a directory, by name, when these are all the files below it."""
    start = len(inside(path))
    below: dict[str, list[Entry]] = {}
    for entry in entries:
        below.setdefault(entry.path[start:].partition("/")[0], []).append(entry)
    return [
        found[0] if found[0].path == inside(path) + name else directory(inside(path) + name, found)
        for name, found in sorted(below.items())
    ]


def _written(info: FileInfo) -> Entry:
    return Entry(info.path, info.size, created_at=info.created_at, updated_at=info.updated_at)
