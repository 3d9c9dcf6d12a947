"""What passes between a server and the protocol library: only what was asked for, or is harmless.

The library gives up on a whole list because of one odd tool, starts a task for each notification,
and tells every listener of changes one by one. Here a list reaches it with only the tools' names
and inputs, the rest goes past it; changes of the list are told once to whom they concern; and all
that nobody asked for is counted, and slowed down when it is too much.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from remit.features.upstreams.client.output import Pace

RAW_TOOLS = "remit/tools"
"""The key in `_meta` under which the tools of a page stand as the server wrote them."""

_UNASKED_PER_SECOND = 2_000
_SMALL = 1_000
"""Bytes of a message that counts as one; reading a larger one takes longer."""
_MOST_PENDING = 10_000
_CHANGED = "notifications/tools/list_changed"
_PASSED = frozenset(
    {
        "notifications/progress",
        "notifications/cancelled",
        "notifications/subscriptions/acknowledged",
    }
)


class Sieve:
    """A transport around a transport."""

    def __init__(
        self,
        inner: Transport,
        *,
        on_changed: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._on_changed = on_changed
        self._on_end = on_end
        self._asked: dict[int | str, str] = {}
        self._pace = Pace(_UNASKED_PER_SECOND)

    async def __aenter__(self) -> tuple["_Reader", "_Writer"]:
        read, write = await self._inner.__aenter__()
        return _Reader(self, read), _Writer(self, write)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)

    def ended(self) -> None:
        """Nothing more comes from the server."""
        self._on_end()

    def going_out(self, item: SessionMessage) -> None:
        """Remember what is asked, so that answers can be told from noise."""
        message = item.message
        if isinstance(message, JSONRPCRequest):
            if len(self._asked) >= _MOST_PENDING:  # what was given up on and never answered
                del self._asked[next(iter(self._asked))]
            self._asked[message.id] = message.method

    async def coming_in(
        self, item: SessionMessage | Exception, size: int = 0
    ) -> SessionMessage | None:
        """What is passed on of something of so many bytes that the server wrote; None: nothing."""
        if not isinstance(item, Exception):
            message = item.message
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                method = self._answered(message.id)
                if method is not None:  # there are no more of them than we have asked for
                    return _cleaned(item) if method == "tools/list" else item
            elif await self._is_passed(message, size):
                return item
        await self._unasked(size)
        return None

    def _answered(self, request: int | str | None) -> str | None:
        if request is None:
            return None
        if request not in self._asked and isinstance(request, str) and request.isdecimal():
            request = int(request)
        return self._asked.pop(request, None)

    async def _is_passed(self, message: JSONRPCRequest | JSONRPCNotification, size: int) -> bool:
        if isinstance(message, JSONRPCNotification):
            if message.method == _CHANGED:
                self._on_changed()
            if message.method not in _PASSED:
                return False
        await self._unasked(size)
        return True

    async def _unasked(self, size: int) -> None:
        """Others have their turn, however fast a server writes; too fast a one waits."""
        await anyio.lowlevel.checkpoint()
        await self._pace.spend(1 + size // _SMALL)


def _cleaned(item: SessionMessage) -> SessionMessage:
    """A page of a list with what the library has to know of it."""
    message = item.message
    raw = message.result.get("tools") if isinstance(message, JSONRPCResponse) else None
    if not isinstance(message, JSONRPCResponse) or not isinstance(raw, list):
        return item
    meta = message.result.get("_meta")
    result: dict[str, Any] = {
        **message.result,
        "tools": [_known(tool) for tool in raw if _is_known(tool)],
        "_meta": {**(meta if isinstance(meta, dict) else {}), RAW_TOOLS: raw},
    }
    return SessionMessage(message.model_copy(update={"result": result}), item.metadata)


def _is_known(tool: Any) -> bool:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return False
    schema = tool.get("inputSchema")
    return isinstance(schema, dict) and schema.get("type") == "object"


def _known(tool: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "inputSchema": tool["inputSchema"]}


class _Reader:
    """What the library reads."""

    def __init__(self, sieve: Sieve, inner: Any) -> None:
        self._sieve = sieve
        self._inner = inner

    @property
    def last_context(self) -> Any:
        """The context of whoever wrote it, which some transports keep."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._sieve.ended()
                raise
            size = getattr(self._inner, "last_size", 0)  # where the transport knows it
            passed = await self._sieve.coming_in(item, size)
            if passed is not None:
                return passed

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Writer:
    """What the library writes to."""

    def __init__(self, sieve: Sieve, inner: Any) -> None:
        self._sieve = sieve
        self._inner = inner

    async def send(self, item: SessionMessage, /) -> None:
        self._sieve.going_out(item)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
