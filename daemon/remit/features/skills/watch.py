"""Watching the directories of capabilities: adds, edits, renames, deletes.

A directory need not be there yet. Those that are there are watched with everything below them; once
a second it is looked whether one came, went or was replaced, and then the watching starts again.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
from watchfiles import Change

from remit.kernel.reload.watch import REST_MS, edits, watch_for_ever

DEBOUNCE_MS = 500

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
    watch = partial(_watch, directories, changed, debounce_ms=debounce_ms)
    await watch_for_ever(watch, "capability_watch_failed")


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
    async for changes in edits(watched, Relevant(watched), debounce_ms=debounce_ms):
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
