"""How a server is reached, and what can be said about its end.

Only what starts a server imports this module: it brings the protocol library.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from mcp.client.streamable_http import streamable_http_client

from remit.upstream.child import Child, started
from remit.upstream.http import Guard, http_client
from remit.upstream.outfit import command_line
from remit.upstream.start import Start
from remit.upstream.stdio import stdio_messages

_LAST_WORDS_SECONDS = 0.5
_SLACK_SECONDS = 10.0


class Endpoint:
    """A server that is reached: its messages, and why it is gone when it is."""

    def __init__(
        self, start: Start, messages: Any, *, child: Child | None = None, guard: Guard | None = None
    ) -> None:
        self._start = start
        self._child = child
        self._guard = guard
        self.messages = messages

    @property
    def trouble(self) -> str:
        """What went wrong last on the way to a URL."""
        return "" if self._guard is None else self._guard.trouble

    async def obituary(self) -> str:
        """What is known about its end; empty when nothing is."""
        last = self._start.errors.last
        if self._child is None:
            return self.trouble
        code = await self._child.exit_code(_LAST_WORDS_SECONDS)
        if code is None:
            return last
        last = self._start.errors.last
        ended = f"it was ended by signal {-code}" if code < 0 else f"it exited with code {code}"
        return f"{ended}: {last}" if last else ended


@asynccontextmanager
async def reached(start: Start, on_broken: Callable[[str], None]) -> AsyncGenerator[Endpoint]:
    """A server for as long as the block runs.

    Args:
        start: how.
        on_broken: told when a server behind a URL cannot be asked any more, and why.

    Raises:
        CannotStartError: it cannot be started.
    """
    limits, upstream, outfit = start.limits, start.upstream, start.outfit
    if upstream.url:
        patience = max(upstream.timeout, upstream.start_timeout) + _SLACK_SECONDS
        guard = Guard(longest=limits.message_bytes, patience=patience, on_broken=on_broken)
        async with http_client(guard, outfit.headers) as client:
            messages = streamable_http_client(
                upstream.url, http_client=client, max_sse_event_size=limits.message_bytes
            )
            yield Endpoint(start, messages, guard=guard)
        return
    path = outfit.env.get("PATH", os.defpath)
    command = await anyio.to_thread.run_sync(command_line, upstream, path)
    async with started(
        [*start.launcher, *command],
        env=outfit.env,
        cwd=upstream.cwd or None,
        errors=start.errors,
        stop_seconds=limits.stop_seconds,
    ) as child:
        lines = stdio_messages(child, noise=start.noise, longest=limits.message_bytes)
        yield Endpoint(start, lines, child=child)
