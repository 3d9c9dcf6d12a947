"""Watching the directories of capabilities: adds, edits, renames, deletes.

A directory need not be there yet. Those that are there are watched with everything below them; once
a second it is looked whether one came, went or was replaced, and then the watching starts again.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import structlog
from watchfiles import Change, awatch

log = structlog.get_logger()

DEBOUNCE_MS = 500
REST_MS = 1_000
RETRY_SECONDS = 5.0

Roots = dict[str, tuple[int, int]]
"""Each directory that is there, with its device and inode."""


async def watch_capabilities(
    directories: Sequence[Path],
    changed: Callable[[], Awaitable[object]],
    *,
    debounce_ms: int = DEBOUNCE_MS,
) -> None:
    """Call `changed` whenever files were edited and then left alone for a while; runs for ever.

    It is also called once when a watch has begun: an edit could fall between two watches. A watch
    or a call that fails is logged and tried again: the daemon goes on without it.
    """
    told = ""
    while True:
        try:
            await _watch(directories, changed, debounce_ms=debounce_ms)
            told = ""
        except Exception as error:  # whatever a watcher or a file system can come up with
            problem = str(error) or type(error).__name__
            if problem != told:
                log.warning("capability_watch_failed", problem=problem)
            told = problem
            await anyio.sleep(RETRY_SECONDS)


async def _watch(
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
    async for changes in awatch(
        *watched,
        watch_filter=Relevant(watched),
        debounce=debounce_ms * 10,
        step=debounce_ms,
        rust_timeout=REST_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    ):
        if changes or is_fresh:
            is_fresh = False
            await changed()
        if roots_of(directories) != watched:
            return


def roots_of(directories: Sequence[Path]) -> Roots:
    """The directories that are there now, behind links."""
    found: Roots = {}
    for directory in directories:
        path = os.path.realpath(directory)
        try:
            status = os.stat(path)  # noqa: PTH116 - a text, as the watcher wants it
        except (OSError, ValueError):
            continue
        found[path] = (status.st_dev, status.st_ino)
    return found


class Relevant:
    """Passes over hidden files and folders: swap files of editors, `.git`."""

    def __init__(self, roots: Roots) -> None:
        self._roots = tuple(f"{root}{os.sep}" for root in roots)

    def __call__(self, _change: Change, path: str) -> bool:
        """Tell whether a change may mean something."""
        inner = next((path[len(root) :] for root in self._roots if path.startswith(root)), "")
        # A mounted configuration is swapped by a link whose name starts with two dots.
        parts = Path(inner).parts
        return not any(part.startswith(".") and not part.startswith("..") for part in parts)
