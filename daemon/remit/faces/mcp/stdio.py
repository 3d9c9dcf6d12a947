"""MCP over standard input and output: one host, one caller.

Only messages go out on standard output; whatever else is printed in this process goes to standard
error. A pipe or a socket tells when it can be read, and takes a short message at once when it has
room; a terminal, a file or a full pipe is waited for in a thread.
"""

import os
import select
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from remit.faces.mcp.server import McpServer
from remit.faces.mcp.tools import OnProgress, Place
from remit_client.client import Client
from remit_client.errors import RemitError as ClientError
from remit_client.wire import Answer, Failure

_CALL_SECONDS = 3_600.0
"""The daemon ends every call much earlier; this only bounds the wait for a daemon that hangs."""
_LONGEST = 16 << 20
"""Bytes of one message; a longer one is no message of a host in its right mind."""
_PIECE = 65_536
_BREAK_SECONDS = 0.5
"""After so long at the most it is noticed that the connection was lost, and news with it."""
_AT_ONCE = select.PIPE_BUF
"""Bytes that a pipe with room takes whole."""


async def serve_stdio(client: Client, name: str) -> None:
    """Serve a host until it closes our input, or reads our output no more.

    Args:
        client: the connection to the daemon.
        name: the agent that it is of, for which the host acts.
    """
    caller = SocketCaller(client, name)
    served = McpServer(lambda _ctx: caller)
    async with (
        anyio.create_task_group() as tasks,
        _own_streams() as (lines, writer),
        stdio_server(stdin=lines, stdout=writer) as (received, sent),
    ):
        tasks.start_soon(served.listeners.run)
        tasks.start_soon(_follow_lists, client, served, name)
        tasks.start_soon(_cancel_at, writer.gone, tasks.cancel_scope)
        await served.server.run(received, sent, served.server.create_initialization_options())
        tasks.cancel_scope.cancel()


class SocketCaller:
    """A caller beside the daemon: its key opened the connection."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self.place: Place = (name, None)
        self._client = client

    async def ask(
        self, event: str, data: Any = None, *, progress: OnProgress | None = None
    ) -> Answer:
        """The answer of an event."""
        try:
            return await self._client.ask(event, data, timeout=_CALL_SECONDS, on_progress=progress)
        except ClientError as error:
            failure = Failure(error.code, error.message, error.hint, dict(error.details))
            return Answer(0, ok=False, error=failure)


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
    """A bounded writer of messages: a host that does not read makes us wait, not grow."""

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


async def _follow_lists(client: Client, served: McpServer, name: str) -> None:
    """Say when the lists may have changed, for as long as the agent lives."""
    async with client.list_news() as pushes:
        lost = 0
        while True:
            with anyio.move_on_after(_BREAK_SECONDS) as quiet:
                await anext(pushes)
            if pushes.interruptions != lost or not quiet.cancelled_caught:
                served.changed(name)
                lost = pushes.interruptions


async def _cancel_at(gone: anyio.Event, scope: anyio.CancelScope) -> None:
    await gone.wait()
    scope.cancel()


@asynccontextmanager
async def _own_streams() -> AsyncGenerator[tuple[Any, Any]]:
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
