"""What any store refuses of the files of sessions, and its errors."""

from collections.abc import Iterable

from remit.errors import ConflictError, InvalidDataError, LimitError, TooLargeError
from remit.model.session import SessionKey
from remit.store.checks import MAX_VALUE_BYTES, check_state_key, check_text
from remit.store.records import FileLimits


def check_session_key(session: SessionKey) -> None:
    """Refuse what is no session."""
    for text, field in ((session.owner, "owner"), (session.name, "session")):
        check_text(text, f"$.{field}")
        if "\0" in text:
            raise InvalidDataError("a session has no NUL in it", details={"path": f"$.{field}"})
    check_text(session.owner_key, "$.owner_key")
    if not session.owner:
        raise InvalidDataError("a session needs an owner", details={"path": "$.owner"})


def check_path(path: str) -> None:
    """Refuse a path that no store can keep; which paths make sense is the handlers' business."""
    check_state_key(path)
    if not path.startswith("/"):
        raise InvalidDataError(
            "a path starts with '/'", hint="as in '/docs/readme.txt'", details={"path": "$.path"}
        )


def check_file(session: SessionKey, path: str, content: bytes, limits: FileLimits) -> None:
    """Refuse a file that could not be kept or found."""
    check_session_key(session)
    check_path(path)
    if path.endswith("/"):
        raise is_directory(path)
    largest = min(limits.size, MAX_VALUE_BYTES)
    if len(content) > largest:
        raise TooLargeError(
            f"the file has {len(content):,} bytes; {largest:,} are the limit",
            hint="split it into more files",
            details={"limit": largest, "size": len(content)},
        )


def check_quota(limits: FileLimits, files: int, size: int) -> None:
    """Refuse what would be too much for one session."""
    if files > limits.count:
        raise _too_much(f"{limits.count:,} files", "files")
    if size > limits.total:
        raise _too_much(f"{limits.total:,} bytes", "bytes")


def check_areas(limits: FileLimits, areas: int) -> None:
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
