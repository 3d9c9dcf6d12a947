"""Watching what people edit: the definition files, and directories of capabilities or cards.

Folders are watched, not files: editors replace a file by renaming another one over it. When a
folder itself is replaced, or a new one appears, the watching starts again; and because an edit
could fall between two watches, the files are read once more when a new watch has come to rest.

A directory of capabilities need not be there yet. Those that are there are watched with everything
below them: adds, edits, renames, deletes.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import anyio
import structlog
from watchfiles import Change, awatch

log = structlog.get_logger()

REST_MS = 1_000
"""How often a watch looks up without an edit."""
RETRY_SECONDS = 5.0
MAX_FOLDERS = 1_000
DEBOUNCE_MS = 500
"""For a directory."""

Folders = dict[str, tuple[int, int]]
"""Each watched folder, with the device and inode that it had."""


async def watch_for_ever(watch: Callable[[], Awaitable[None]], failed: str, **hint: str) -> None:
    """Begin a watch again whenever it ends. One that fails is logged, once for each problem."""
    told = ""
    while True:
        try:
            await watch()
            told = ""
        except Exception as error:  # whatever a watcher or a file system can come up with
            problem = str(error) or type(error).__name__
            if problem != told:
                log.warning(failed, problem=problem, **hint)
            told = problem
            await anyio.sleep(RETRY_SECONDS)


def edits(
    folders: Iterable[str],
    is_relevant: Callable[[Change, str], bool],
    *,
    debounce_ms: int,
    recursive: bool = True,
) -> AsyncGenerator[set[tuple[Change, str]], None]:
    """What was edited and then left alone for a while; nothing, each time the watch looks up."""
    return awatch(
        *folders,
        recursive=recursive,
        watch_filter=is_relevant,
        debounce=debounce_ms * 10,
        step=debounce_ms,
        rust_timeout=REST_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    )


async def watch_definitions(
    catalogue: Path,
    compositions: Path | None,
    reload: Callable[[], Awaitable[object]],
    *,
    debounce_ms: int,
) -> None:
    """Reload whenever the files were edited and then left alone for a while; runs for ever.

    A watch that fails is logged and tried again: the daemon goes on without it.
    """
    watch = partial(_watch, catalogue, compositions, reload, debounce_ms=debounce_ms)
    await watch_for_ever(watch, "watch_failed", hint="remit reload still works")


async def _watch(
    catalogue: Path,
    compositions: Path | None,
    reload: Callable[[], Awaitable[object]],
    *,
    debounce_ms: int,
) -> None:
    """Watch until the folders are no longer the same."""
    watched = folders_of(catalogue, compositions)
    is_relevant = _RelevantDefinition(catalogue, compositions)
    async for changes in edits(watched, is_relevant, debounce_ms=debounce_ms, recursive=False):
        if changes or is_relevant.is_fresh:
            is_relevant.is_fresh = False
            await reload()
        if folders_of(catalogue, compositions) != watched:
            return


def folders_of(catalogue: Path, compositions: Path | None) -> Folders:
    """The folders in which an edit can happen, behind links too."""
    wanted = {catalogue.parent, catalogue.resolve().parent}
    if compositions is not None:
        wanted |= {compositions.parent, compositions.resolve().parent}
        inside = (Path(folder) for folder, _, _ in os.walk(compositions))
        wanted |= {folder for _, folder in zip(range(MAX_FOLDERS), inside, strict=False)}
    found: Folders = {}
    for folder in sorted(wanted):
        try:
            status = folder.stat()
        except OSError:
            continue  # it is noticed in its parent when it comes back
        found[str(folder)] = (status.st_dev, status.st_ino)
    return found


class _RelevantDefinition:
    """Tells edits of definitions from whatever else happens in the same folders."""

    def __init__(self, catalogue: Path, compositions: Path | None) -> None:
        # Where something else happens all the time, a new watch would never come to rest.
        self.is_fresh = True
        links = [catalogue, catalogue.resolve()]
        self._tree: tuple[str, ...] = ()
        if compositions is not None:
            links += [compositions, compositions.resolve()]
            self._tree = (f"{compositions}{os.sep}", f"{compositions.resolve()}{os.sep}")
        self._names = {path.name for path in links}

    def __call__(self, _change: Change, path: str) -> bool:
        # A mounted configuration is swapped by a link whose name starts with two dots.
        name = os.path.basename(path)  # noqa: PTH119 - called for every change in the folder
        is_ours = name in self._names or name.startswith("..") or path.startswith(self._tree)
        return is_ours or self.is_fresh


async def watch_directories(
    directories: Sequence[Path],
    changed: Callable[[], Awaitable[object]],
    *,
    debounce_ms: int = DEBOUNCE_MS,
) -> None:
    """Call `changed` whenever files were edited and then left alone for a while; runs for ever.

    It is also called once when a watch has begun: an edit could fall between two watches. A watch
    or a call that fails is logged and tried again: the daemon goes on without it.
    """
    watch = partial(_watch_directories, directories, changed, debounce_ms=debounce_ms)
    await watch_for_ever(watch, "capability_watch_failed")


async def _watch_directories(
    directories: Sequence[Path], changed: Callable[[], Awaitable[object]], *, debounce_ms: int
) -> None:
    """Watch until the directories are no longer the same."""
    watched = roots_of(directories)
    if not watched:
        await changed()
        while not roots_of(directories):  # noqa: ASYNC110 - nobody tells that a folder was made
            await anyio.sleep(REST_MS / 1000)
        return
    is_fresh = True
    async for changes in edits(watched, RelevantPath(watched), debounce_ms=debounce_ms):
        if changes or is_fresh:
            is_fresh = False
            await changed()
        if roots_of(directories) != watched:
            return


def roots_of(directories: Sequence[Path]) -> Folders:
    """The directories that are there now, behind links."""
    found: Folders = {}
    for directory in directories:
        path = os.path.realpath(directory)
        try:
            status = os.stat(path)  # noqa: PTH116 - a text, as the watcher wants it
        except (OSError, ValueError):
            continue
        found[path] = (status.st_dev, status.st_ino)
    return found


class RelevantPath:
    """Passes over hidden files and folders: swap files of editors, `.git`."""

    def __init__(self, roots: Folders) -> None:
        self._roots = tuple(f"{root}{os.sep}" for root in roots)

    def __call__(self, _change: Change, path: str) -> bool:
        """Tell whether a change may mean something."""
        inner = next((path[len(root) :] for root in self._roots if path.startswith(root)), "")
        # A mounted configuration is swapped by a link whose name starts with two dots.
        parts = Path(inner).parts
        return not any(part.startswith(".") and not part.startswith("..") for part in parts)
