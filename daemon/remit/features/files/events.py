"""file:* — files of a session. They are rows of the store; no path of this machine is touched."""

from typing import Annotated, Any, Literal

import msgspec

from remit.errors import ConflictError, InvalidDataError
from remit.features.files.tree import MAX_MATCHES, FileEntry, FileSearch, SessionFiles, children
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.model.grant import SessionKey
from remit.model.paths import MAX_PATH_BYTES, ROOT, parse_file_path
from remit.model.schema import PAGE_MAX

Path = Annotated[str, msgspec.Meta(max_length=MAX_PATH_BYTES)]
Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Content = Annotated[str, msgspec.Meta(max_length=1 << 24)]
Glob = Annotated[str, msgspec.Meta(max_length=500)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
MatchLimit = Annotated[int, msgspec.Meta(ge=1, le=MAX_MATCHES)]
Encoding = Literal["text", "base64"]

_CAPABILITY = "session_file_system"


@event_handler("file:read_file", capability=_CAPABILITY, effect="read", tool="read_file")
async def read_file(ctx: Context, session: SessionKey, path: Path) -> dict[str, Any]:
    """Read a file of the session.

    Args:
        path: its absolute path, as in '/docs/readme.txt'.
    """
    where = parse_file_path(path)
    content = await SessionFiles.of(ctx, session).read(where)
    text = _as_text(content)
    return {
        "path": where,
        "content": _to_base64(content) if text is None else text,
        "encoding": "base64" if text is None else "text",
        "size_bytes": len(content),
    }


@event_handler("file:write_file", capability=_CAPABILITY, tool="write_file")
async def write_file(
    ctx: Context, session: SessionKey, path: Path, content: Content, encoding: Encoding = "text"
) -> dict[str, Any]:
    """Write a file of the session; missing directories are made.

    Args:
        path: its absolute path, as in '/docs/readme.txt'.
        content: what is to be in it.
        encoding: how the content is written: text, or base64 for other bytes.
    """
    where = parse_file_path(path)
    data = _to_bytes(content, encoding)
    info, is_new = await SessionFiles.of(ctx, session).write(where, data)
    return {"path": where, "size_bytes": info.size, "created": is_new}


@event_handler("file:list_directory", capability=_CAPABILITY, effect="read", tool="list_directory")
async def list_directory(
    ctx: Context,
    session: SessionKey,
    path: Path = ROOT,
    limit: Limit = PAGE_MAX,
    after: Path = "",
) -> dict[str, Any]:
    """List a directory of the session by name, a page at a time.

    Args:
        path: its absolute path.
        limit: how many entries at the most.
        after: the `next` of the page before.
    """
    where = parse_file_path(path)
    files = SessionFiles.of(ctx, session)
    entries = await files.under(where)
    if not entries and where != ROOT:
        await files.read(where)  # says so when it is not there
        raise ConflictError(
            f"{where!r} is a file", hint="read it with read_file", details={"path": where}
        )
    found = children(where, entries)
    behind = [entry for entry in found if entry.name > after]
    return {
        "path": where,
        "entries": [_shown(entry) for entry in behind[:limit]],
        "count": len(found),
        "next": behind[limit - 1].name if len(behind) > limit else None,
    }


@event_handler("file:grep_files", capability=_CAPABILITY, effect="read", tool="grep_files")
async def grep_files(
    ctx: Context,
    session: SessionKey,
    pattern: Pattern,
    path_pattern: Glob = "",
    limit: MatchLimit = 100,
) -> dict[str, Any]:
    """Search the text files of the session, line by line.

    Args:
        pattern: what to look for, as a regular expression in RE2 syntax.
        path_pattern: only paths like this, as in '*.txt' or '/docs/**'.
        limit: how many matches to answer at the most; all are counted.
    """
    from anyio import to_thread  # noqa: PLC0415 - a command that asks for names needs no threads

    files = SessionFiles.of(ctx, session)
    search = FileSearch(pattern, path_pattern, limit=limit, clock=ctx.kernel.clock)
    batch = await files.mounted()
    after = ""
    while not search.ended_early:
        await to_thread.run_sync(search.feed, batch)
        page = await files.page(after)
        if not page:
            break
        after = page[-1].info.path
        batch = [(one.info.path, one.content) for one in page if files.shows(one.info.path)]
    return {
        "pattern": pattern,
        "matches": search.matches,
        "match_count": search.count,
        "files_searched": search.files,
        "truncated": search.truncated,
    }


@event_handler("file:delete_file", capability=_CAPABILITY, effect="destructive", tool="delete_file")
async def delete_file(
    ctx: Context,
    session: SessionKey,
    path: Path,
    recursive: bool = False,  # noqa: FBT001, FBT002 - a field of the request
) -> dict[str, Any]:
    """Delete a file of the session, or a directory with all that is in it.

    Args:
        path: its absolute path.
        recursive: whether a directory may go with all that is in it.
    """
    where = parse_file_path(path)
    count = await SessionFiles.of(ctx, session).remove(where, recursive=recursive)
    return {"path": where, "deleted": count > 0, "count": count}


@event_handler("file:stat_file", capability=_CAPABILITY, effect="read", tool="stat_file")
async def stat_file(ctx: Context, session: SessionKey, path: Path) -> dict[str, Any]:
    """Tell what is known about a path of the session, whether or not there is a file.

    Args:
        path: an absolute path.
    """
    where = parse_file_path(path)
    found = await SessionFiles.of(ctx, session).look(where)
    if found is None:
        return {**_shown(FileEntry(where, 0)), "path": where, "exists": False}
    return {**_shown(found), "path": where, "exists": True}


def _shown(entry: FileEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "is_directory": entry.is_directory,
        "is_readonly": entry.read_only,
        "size_bytes": entry.size,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    }


def _as_text(content: bytes) -> str | None:
    """The text that these bytes are, or None when they are something else."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _to_base64(content: bytes) -> str:
    import base64  # noqa: PLC0415 - most files are text

    return base64.b64encode(content).decode()


def _to_bytes(content: str, encoding: Encoding) -> bytes:
    import binascii  # noqa: PLC0415 - see above

    try:
        if encoding == "base64":
            return binascii.a2b_base64(content, strict_mode=True)
        return content.encode()
    except ValueError as error:  # also what is not ASCII, or half a sign
        raise InvalidDataError(
            f"the content is not {encoding}: {error}",
            hint="send text, or the base64 of the bytes with its padding",
            details={"path": "$.content"},
        ) from error
