"""The file system of one session: what was written there, and what capabilities mount into it.

A mount wins over what was written, so that no agent can hide what an operator shows. A file that is
mounted for writing is changed in the session only, and the definition stays what it is. Text files
are searched line by line, in time that grows with their length and no faster.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec

from remit.errors import ConflictError, InvalidDataError, NotFoundError
from remit.features.files.store import (
    FileInfo,
    FileLimits,
    FileRows,
    StoredFile,
    check_way,
    is_directory,
)
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.feature import Setup, Startup
from remit.model.capability import Mount
from remit.model.grant import SessionKey
from remit.model.names import did_you_mean
from remit.model.paths import ROOT, FilePath, inside, parents
from remit.policy.catalogue import mounts_of

MAX_MATCHES = 500
"""Of one answer."""
MAX_COUNT = 100_000
"""Matches that are counted before a search ends."""
MAX_SECONDS = 5.0
_MAX_LINE = 300
_MAX_BYTES = 262_144
"""Of all matches of one answer: a message may have 1 MiB."""
_MAX_MEMORY = 1 << 16
"""Of one pattern in bytes. It bounds how many letters times states a search may look at."""
_PIECE = 65_536
"""Bytes that are searched before the clock is looked at."""
_GLOB = (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))


class FileEntry(msgspec.Struct, frozen=True):
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
        store: FileRows,
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
        return cls(FileRows(ctx.kernel.database), session, mounts, ctx.kernel.service(FileLimits))

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

    async def under(self, directory: FilePath) -> list[FileEntry]:
        """All files in a directory and in those below it, by path."""
        prefix = inside(directory)
        written = await self._store.file_list(self._session, prefix)
        found = {path: self._mounted(path) for path in self.mounts if path.startswith(prefix)}
        found.update((info.path, _written(info)) for info in written if self.shows(info.path))
        return sorted(found.values(), key=lambda entry: entry.path)

    async def look(self, path: FilePath) -> FileEntry | None:
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

    def _mounted(self, path: str) -> FileEntry:
        mount = self.mounts[path]
        return FileEntry(path, len(mount.content), mount.read_only)

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


def directory(path: str, entries: Sequence[FileEntry]) -> FileEntry:
    """A directory, told by all the files below it."""
    return FileEntry(
        path,
        sum(entry.size for entry in entries),
        bool(entries) and all(entry.read_only for entry in entries),
        min((e.created_at for e in entries if e.created_at is not None), default=None),
        max((e.updated_at for e in entries if e.updated_at is not None), default=None),
        is_directory=True,
    )


def children(path: str, entries: Sequence[FileEntry]) -> list[FileEntry]:
    """What lies directly in a directory, by name, when these are all the files below it."""
    start = len(inside(path))
    below: dict[str, list[FileEntry]] = {}
    for entry in entries:
        below.setdefault(entry.path[start:].partition("/")[0], []).append(entry)
    return [
        found[0] if found[0].path == inside(path) + name else directory(inside(path) + name, found)
        for name, found in sorted(below.items())
    ]


def _written(info: FileInfo) -> FileEntry:
    return FileEntry(info.path, info.size, created_at=info.created_at, updated_at=info.updated_at)


class FileMatch(msgspec.Struct, frozen=True):
    """A line with something in it that the pattern matches."""

    path: str
    line_number: int
    line: str


class FileSearch:
    """One search; feed it files until it has had enough."""

    def __init__(
        self, pattern: str, path_pattern: str, *, limit: int, clock: Callable[[], float]
    ) -> None:
        self._search = compile_pattern(pattern, "$.pattern", lines=True).search
        wanted = compile_pattern(_glob(path_pattern), "$.path_pattern").fullmatch
        self._is_wanted: Callable[[str], Any] = wanted if path_pattern else lambda _path: True
        self._limit = limit
        self._clock = clock
        self._until = clock() + MAX_SECONDS
        self._room = _MAX_BYTES
        self.matches: list[FileMatch] = []
        self.count = 0
        self.files = 0
        self.ended_early = False

    def feed(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Search some files; those with a NUL in them are no text, and left out."""
        for path, content in files:
            if self._has_enough():
                return
            if self._is_wanted(path) and b"\0" not in content:
                self.files += 1
                self._feed(path, content)

    def _has_enough(self) -> bool:
        self.ended_early |= self.count >= MAX_COUNT or self._clock() > self._until
        return self.ended_early

    @property
    def truncated(self) -> bool:
        """Tell whether there is, or may be, more than the answer holds."""
        return self.ended_early or self.count > len(self.matches)

    def _feed(self, path: str, content: bytes) -> None:
        number, counted = 1, 0
        for first, last in _pieces(content):
            position = first
            while position <= last and (found := self._search(content, position, last)) is not None:
                start = content.rfind(b"\n", 0, found.start()) + 1
                end = content.find(b"\n", found.start())
                end = len(content) if end < 0 else end
                number += content.count(b"\n", counted, start)
                counted, position = start, end + 1
                self.count += 1
                self._note(path, number, content[start : min(end, start + 4 * _MAX_LINE)])
            if self._has_enough():
                return

    def _note(self, path: str, number: int, line: bytes) -> None:
        if len(self.matches) >= self._limit or self._room <= 0:
            return
        text = line.decode(errors="replace").rstrip("\r")[:_MAX_LINE]
        self._room -= len(path.encode()) + len(text.encode()) + 64
        self.matches.append(FileMatch(path, number, text))


def _pieces(content: bytes) -> Iterator[tuple[int, int]]:
    """Where pieces of whole lines begin and end, without the last line break of each."""
    first, size = 0, len(content)
    while first < size:
        last = content.find(b"\n", first + _PIECE)
        last = size - content.endswith(b"\n") if last < 0 else last
        yield first, last
        first = last + 1


def compile_pattern(pattern: str, field: str, *, lines: bool = False) -> Any:
    """A pattern that never takes more than linear time.

    Raises:
        InvalidDataError: it is none, or has what only slow engines know.
    """
    import re2  # noqa: PLC0415 - a library of C++, and few commands search

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    options.never_nl = lines
    try:
        re2.compile(pattern, options)  # by itself first: what is put around must not mend it
        return re2.compile(f"(?m:{pattern})" if lines else pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        text = error.args[0] if error.args else error
        reason = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        raise InvalidDataError(
            f"the pattern cannot be used: {reason}",
            hint="write it in RE2 syntax, without look-around and back references",
            details={"path": field},
        ) from error


def _glob(pattern: str) -> str:
    """`*` and `?` stay inside a directory, `**` does not; without a '/' it is about names."""
    import re2  # noqa: PLC0415 - see above

    if not pattern.startswith("/"):
        pattern = f"**/{pattern}"
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        for token, meaning in _GLOB:
            if pattern.startswith(token, position):
                parts.append(meaning)
                position += len(token)
                break
        else:
            parts.append(re2.escape(pattern[position]))
            position += 1
    return "".join(parts)


def _build(kernel: Kernel, startup: Startup) -> None:
    settings = startup.settings
    limits = FileLimits(
        size=settings.file_size_limit,
        count=settings.file_count_limit,
        total=settings.file_total_limit,
    )
    kernel.provide(startup.take(FileLimits, lambda: limits))


SETUP = Setup(build=_build)
