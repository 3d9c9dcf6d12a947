"""Files of sessions in memory."""

from remit.kernel.store.file_protocol import FILE_PAGE_BYTES
from remit.kernel.store.memory_tables import MemoryTables
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


class MemoryFiles(MemoryTables):
    """See `FileStore` for what each method promises."""

    async def file_put(
        self, session: SessionKey, path: str, content: bytes, *, limits: FileLimits
    ) -> tuple[FileInfo, bool]:
        """Keep a file, in the place of the one of that path; tells whether it is new."""
        check_file(session, path, content, limits)
        files = self._files.get(session, {})
        check_way(path, (above for above in reversed(parents(path)) if above in files))
        if any(other.startswith(inside(path)) for other in files):
            raise is_directory(path)
        if not files:
            owned = (key for key in self._files if key.owner == session.owner)
            check_areas(limits, 1 + sum(key.owner_key == session.owner_key for key in owned))
        now = self._clock()
        before = files.get(path)
        created_at = now if before is None else before.info.created_at
        file = StoredFile(FileInfo(path, len(content), created_at, now), content)
        kept = files | {path: file}
        check_quota(limits, len(kept), sum(one.info.size for one in kept.values()))
        self._files[session] = kept
        return file.info, before is None

    async def file_get(self, session: SessionKey, path: str) -> StoredFile | None:
        """The file of that path, or None."""
        check_session_key(session)
        check_path(path)
        return self._files.get(session, {}).get(path)

    async def file_list(self, session: SessionKey, prefix: str = "/") -> tuple[FileInfo, ...]:
        """All files whose path starts with `prefix`, by path."""
        check_session_key(session)
        check_path(prefix)
        files = sorted(self._files.get(session, {}).items())
        return tuple(file.info for path, file in files if path.startswith(prefix))

    async def file_page(
        self, session: SessionKey, *, after: str = "", max_bytes: int = FILE_PAGE_BYTES
    ) -> tuple[StoredFile, ...]:
        """Files from behind `after`, by path, until they outgrow `max_bytes`."""
        check_session_key(session)
        if after:
            check_path(after)
        page: list[StoredFile] = []
        for path, file in sorted(self._files.get(session, {}).items()):
            if path <= after:
                continue
            max_bytes -= file.info.size
            if page and max_bytes < 0:
                break
            page.append(file)
        return tuple(page)

    async def file_remove(self, session: SessionKey, path: str, *, recursive: bool = False) -> int:
        """Remove the file of that path, and with `recursive` all below it; tells how many."""
        check_session_key(session)
        check_path(path)
        files = self._files.get(session, {})
        gone = [p for p in files if p == path or (recursive and p.startswith(inside(path)))]
        left = {p: file for p, file in files.items() if p not in gone}
        if left:
            self._files[session] = left
        else:
            self._files.pop(session, None)
        return len(gone)

    async def file_clear(self, session: SessionKey) -> int:
        """Remove all files of a session; tells how many."""
        check_session_key(session)
        return len(self._files.pop(session, {}))
