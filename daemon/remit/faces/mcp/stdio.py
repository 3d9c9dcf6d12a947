"""MCP over standard input and output: one host, one caller.

Only messages go out on standard output; whatever else is printed in this process goes to standard
error.
"""

import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import anyio
from mcp.server.stdio import stdio_server

from remit.faces.mcp.caller import Caller
from remit.faces.mcp.pipes import Lines, Pipe
from remit.faces.mcp.server import McpServer


async def serve_stdio(
    caller: Caller, watch: Callable[[McpServer], Coroutine[Any, Any, None]], *, streams: Any = None
) -> None:
    """Serve a host until it closes our input, or reads our output no more.

    Args:
        caller: whom the host acts for.
        watch: tells the server when lists may have changed; runs beside.
        streams: what to read and write instead of this process's own.
    """
    served = McpServer(lambda _ctx: caller)
    async with (
        anyio.create_task_group() as tasks,
        _wires() if streams is None else _given(streams) as (lines, pipe),
        stdio_server(stdin=lines, stdout=pipe) as (received, sent),
    ):
        tasks.start_soon(served.listeners.run)
        tasks.start_soon(watch, served)
        tasks.start_soon(_until, pipe.gone, tasks.cancel_scope)
        await served.server.run(received, sent, served.server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _until(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()


@asynccontextmanager
async def _given(streams: tuple[BinaryIO, BinaryIO]) -> AsyncGenerator[tuple[Any, Any]]:
    yield Lines(streams[0].fileno()), Pipe(streams[1].fileno())


@asynccontextmanager
async def _wires() -> AsyncGenerator[tuple[Any, Any]]:
    """Standard input and output for messages alone; a stray `print` goes to standard error."""
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # Never closed: a thread may still wait there when the process ends.
    yield Lines(reading), Pipe(writing)
