"""Progress of a call, told to the host that asked for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext

from remit.faces.mcp.caller import OnProgress
from remit_client.wire import Progress

_WAITING = 64
"""Reports that wait for a slow host; later ones are dropped, the result is not."""


@asynccontextmanager
async def reporting(ctx: ServerRequestContext[Any, Any]) -> AsyncGenerator[OnProgress | None]:
    """A way to report progress while the block runs; None when nobody asked for it."""
    if not ctx.meta or "progress_token" not in ctx.meta:
        yield None
        return
    send, receive = anyio.create_memory_object_stream[Progress](_WAITING)

    def report(progress: Progress) -> None:
        try:
            send.send_nowait(progress)
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def carry() -> None:
        async with receive:
            async for one in receive:
                await ctx.session.report_progress(one.done, one.total, one.message or None)

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carry)
        try:
            yield report
        except Exception as error:  # carried out by hand: the task group would wrap it
            failure = error
        finally:
            send.close()  # what was reported before the end still goes out
    if failure is not None:
        raise failure
