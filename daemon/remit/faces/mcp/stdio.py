"""MCP over standard input and output: one host, one caller.

Only messages go out on standard output; whatever else is printed in this process goes to standard
error. A pipe or a socket tells when it can be read, and takes a short message at once when it has
room; a terminal, a file or a full pipe is waited for in a thread.
"""

import os
import select
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from remit.faces.mcp.caller import McpCaller
from remit.faces.mcp.server import McpServer

_LONGEST = 16 << 20
"""Bytes of one message; a longer one is no message of a host in its right mind."""
_PIECE = 65_536
_AT_ONCE = select.PIPE_BUF
"""Bytes that a pipe with room takes whole."""


async def serve_stdio(
    caller: McpCaller,
    watch: Callable[[McpServer], Coroutine[Any, Any, None]],
    *,
    streams: Any = None,
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


class LineReader:
    """The lines that a host writes; waiting for one can be given up."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._tells = _tells(descriptor)
        self._held = bytearray()
        self._looked = 0

    def __aiter__(self) -> "LineReader":
        return self

    async def __anext__(self) -> str:
        while True:
            end = self._held.find(b"\n", self._looked) + 1
            if not end and len(self._held) < _LONGEST:
                self._looked = len(self._held)
                piece = await self._piece()
                self._held += piece
                if piece:
                    continue
            if not self._held:
                raise StopAsyncIteration
            line = self._held[: end or _LONGEST]
            del self._held[: len(line)]
            self._looked = 0
            return line.decode("utf-8", errors="replace")

    async def _piece(self) -> bytes:
        """More bytes; none at the end."""
        if not self._tells:
            read = anyio.to_thread.run_sync
            return await read(os.read, self._descriptor, _PIECE, abandon_on_cancel=True)
        while True:
            await anyio.wait_readable(self._descriptor)
            try:
                return os.read(self._descriptor, _PIECE)
            except BlockingIOError:  # whoever shares it was faster
                continue


class LineWriter:
    """Where messages go; a host that does not read makes us wait, not grow."""

    def __init__(self, descriptor: int) -> None:
        self.gone = anyio.Event()
        """Set when the host reads no more."""
        self._descriptor = descriptor
        self._room = select.poll() if _tells(descriptor) else None
        if self._room is not None:
            self._room.register(descriptor, select.POLLOUT)

    async def write(self, text: str) -> None:
        """Write a message."""
        data = text.encode()
        try:
            if len(data) <= _AT_ONCE and self._room is not None and self._room.poll(0):
                data = data[os.write(self._descriptor, data) :]
            if data:
                await anyio.to_thread.run_sync(self._write, data, abandon_on_cancel=True)
        except (BrokenPipeError, ConnectionResetError):
            self.gone.set()

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # the host made it so
                select.select([], [self._descriptor], [])


async def _until(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()


@asynccontextmanager
async def _given(streams: tuple[BinaryIO, BinaryIO]) -> AsyncGenerator[tuple[Any, Any]]:
    yield LineReader(streams[0].fileno()), LineWriter(streams[1].fileno())


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
    yield LineReader(reading), LineWriter(writing)


def _tells(descriptor: int) -> bool:
    """Whether it tells when it can be read or written; epoll takes no files."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
