"""Edits of files as they happen, and a watch that outlives its failures."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

import anyio
import structlog
from watchfiles import Change, awatch

log = structlog.get_logger()

REST_MS = 1_000
"""How often a watch looks up without an edit."""
RETRY_SECONDS = 5.0


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
