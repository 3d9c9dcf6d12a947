"""What every store promises of the files of sessions."""

from typing import Protocol

from remit.kernel.store.records import FileInfo, FileLimits, StoredFile
from remit.model.grant import SessionKey

FILE_PAGE_BYTES = 1024 * 1024


class FileStore(Protocol):
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

    async def file_get(self, session: SessionKey, path: str) -> StoredFile | None:
        """The file of that path, or None."""

    async def file_list(self, session: SessionKey, prefix: str = "/") -> tuple[FileInfo, ...]:
        """All files whose path starts with `prefix`, by path; their number is limited."""

    async def file_page(
        self, session: SessionKey, *, after: str = "", max_bytes: int = FILE_PAGE_BYTES
    ) -> tuple[StoredFile, ...]:
        """Files from behind `after`, by path, until they outgrow `max_bytes`; at least one."""

    async def file_remove(self, session: SessionKey, path: str, *, recursive: bool = False) -> int:
        """Remove the file of that path, and with `recursive` all below it; tells how many."""

    async def file_clear(self, session: SessionKey) -> int:
        """Remove all files of a session; tells how many."""
