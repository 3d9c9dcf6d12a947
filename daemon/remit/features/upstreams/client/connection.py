"""One live connection to a server: its list, its calls, and what ends it.

Only what starts a server imports this module: it brings the protocol library.
"""

import logging
import math
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata
from typing import Any

import anyio
import anyio.to_thread
from mcp.client import Client, InputRequiredRoundsExceededError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, Implementation
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from remit.errors import InvalidDataError, ToolFailedError
from remit.features.upstreams.client.results import (
    Page,
    all_tools,
    check_structure,
    outcome_of,
    too_large,
)
from remit.features.upstreams.client.schema import Checker
from remit.features.upstreams.client.start import HandshakeError, StartParameters, command_line
from remit.features.upstreams.client.state import (
    CallOutcome,
    Listing,
    Progress,
    ServerGoneError,
    Signals,
)
from remit.features.upstreams.client.stdio import (
    TOO_LARGE,
    open_server,
    stdio_messages,
)
from remit.features.upstreams.client.transport import (
    RAW_TOOLS,
    SIZE,
    BoundedTransport,
    MessageFilter,
    http_client,
)
from remit.kernel.processes.child import ChildProcess

_LAST_WORDS_SECONDS = 0.5
_SLACK_SECONDS = 10.0
_LONGEST = 1_000
_ON_THE_WAY = ("Server returned an error response", "Session terminated", "SSE stream", "Redirect")
_UNKNOWN_TOOL = re.compile(r"unknown tool|tool\b.{0,140}\bnot found", re.IGNORECASE)
_LISTEN_PAUSES = (1.0, 60.0)

# What a server says must not get into our log unbounded and with its secrets: the library logs
# lines that it cannot read, with a traceback each. What matters is told by exceptions too.
for _name in ("mcp.client", "client"):
    _library = logging.getLogger(_name)  # noqa: TID251 - to silence it
    _library.addHandler(logging.NullHandler())
    _library.propagate = False


def _version() -> str:
    try:
        return metadata.version("remit")
    except metadata.PackageNotFoundError:  # a checkout that is on the path and not installed
        return "0"


_OURSELVES = Implementation(name="remit", version=_version())


class ServerEndpoint:
    """A server that is reached: its messages, and why it is gone when it is."""

    def __init__(
        self,
        start: StartParameters,
        messages: Any,
        *,
        child: ChildProcess | None = None,
        http: BoundedTransport | None = None,
    ) -> None:
        self._start = start
        self._child = child
        self._http = http
        self.messages = messages

    @property
    def trouble(self) -> str:
        """What went wrong last on the way to a URL."""
        return "" if self._http is None else self._http.trouble

    async def end_reason(self) -> str:
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
async def open_endpoint(
    start: StartParameters, on_broken: Callable[[str], None]
) -> AsyncGenerator[ServerEndpoint]:
    """A server for as long as the block runs.

    Args:
        start: how.
        on_broken: told when a server behind a URL cannot be asked any more, and why.

    Raises:
        CannotStartError: it cannot be started.
    """
    limits, upstream, environment = start.limits, start.upstream, start.environment
    if upstream.url:
        patience = max(upstream.timeout, upstream.start_timeout) + _SLACK_SECONDS
        http = BoundedTransport(
            longest=limits.message_bytes, patience=patience, on_broken=on_broken
        )
        async with http_client(http, environment.headers) as client:
            messages = streamable_http_client(
                upstream.url, http_client=client, max_sse_event_size=limits.message_bytes
            )
            yield ServerEndpoint(start, messages, http=http)
        return
    path = environment.env.get("PATH", os.defpath)
    command = await anyio.to_thread.run_sync(command_line, upstream, path)
    async with open_server(
        [*start.guard, *command],
        env=environment.env,
        cwd=upstream.cwd or None,
        errors=start.errors,
        stop_seconds=limits.stop_seconds,
    ) as child:
        lines = stdio_messages(child, noise=start.noise, longest=limits.message_bytes)
        yield ServerEndpoint(start, lines, child=child)


class ServerConnection:
    """A server that has answered the handshake; `open_connection` makes one."""

    def __init__(
        self, start: StartParameters, client: Client, endpoint: ServerEndpoint, signals: Signals
    ) -> None:
        self._start = start
        self._client = client
        self._endpoint = endpoint
        self._masks = start.environment.masks
        self._most = start.limits.message_bytes
        self._promised: dict[str, Checker | dict[str, object]] = {}
        self.signals = signals
        info = client.server_info
        self.protocol = client.protocol_version
        self.server_name = self._masks.text(info.name)[:200] if info else ""
        self.server_version = self._masks.text(info.version)[:200] if info else ""

    async def tools(self) -> Listing:
        """All its tools.

        Raises:
            ServerGoneError: it gave no list.
        """
        try:
            found = await all_tools(self._page, self._start.limits, self._masks)
        except MCPError as error:
            if self.signals.ended:
                raise ServerGoneError(await self.end_reason()) from error
            raise ServerGoneError(f"it gave no list of tools: {self._gone(error)}") from error
        except ValidationError as error:
            raise ServerGoneError("its list of tools is not as the protocol says") from error
        self._promised = {
            tool.name: tool.output_schema for tool in found.taken if tool.output_schema is not None
        }
        return Listing(
            tools=found.taken,
            protocol=self.protocol,
            server_name=self.server_name,
            server_version=self.server_version,
            left_out=found.left_out,
            reasons=found.reasons,
        )

    async def _page(self, cursor: str | None) -> Page:
        if self._client.server_capabilities.tools is None:
            return [], None
        page = await self._client.list_tools(cursor=cursor)
        return (page.meta or {}).get(RAW_TOOLS, []), page.next_cursor

    async def call(
        self, tool: str, arguments: dict[str, object], tell: Progress | None
    ) -> CallOutcome:
        """Call a tool.

        Raises:
            ServerGoneError: the server went away meanwhile, or before.
            RemitError: what a caller can be told.
        """

        async def told(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            if tell is None or not math.isfinite(progress):
                return
            of = total if total is not None and math.isfinite(total) else None
            tell(progress, of, self._masks.text(message or "")[:_LONGEST])

        try:
            result = await self._client.call_tool(
                tool, arguments, progress_callback=None if tell is None else told
            )
        except MCPError as error:
            raise self._failure(tool, error) from error
        except (ValidationError, InputRequiredRoundsExceededError) as error:
            message = f"{tool} did not answer as the protocol says"
            raise ToolFailedError(message, details={"reason": "protocol"}) from error
        except ValueError as error:  # the library could not write them
            message = "the arguments cannot be sent: they are nested too deeply, or no proper text"
            raise InvalidDataError(message, details={"path": "$"}) from error
        outcome = outcome_of(result, self._masks, most=self._most)
        if outcome.is_error:
            self._look_again(outcome)
        elif (checker := self._checker(tool)) is not None:
            await check_structure(tool, outcome, checker)
        return outcome

    def _checker(self, tool: str) -> Checker | None:
        promised = self._promised.get(tool)
        if isinstance(promised, dict):
            promised = self._promised[tool] = Checker(promised)
        return promised

    def _look_again(self, outcome: CallOutcome) -> None:
        """A tool that the server does not know was renamed or taken away: list anew."""
        texts = (block.get("text") for block in outcome.content[:1])
        if any(isinstance(text, str) and _UNKNOWN_TOOL.search(text[:400]) for text in texts):
            self.signals.change()

    def _failure(self, tool: str, error: MCPError) -> Exception:
        if error.message == TOO_LARGE and isinstance(error.data, dict):
            return too_large(error.data.get("bytes"), self._most)
        if SIZE in error.message or "byte limit" in error.message:
            return too_large(None, self._most)
        if self.signals.ended or self._is_closed(error) or self._is_on_the_way(error):
            return self._gone(error)
        if error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
            self.signals.change()
        said = self._masks.text(error.message)[:_LONGEST]
        return ToolFailedError(
            f"{tool} was refused by its server: {said}",
            details={"reason": "protocol", "rpc_code": error.code},
        )

    def _is_closed(self, error: MCPError) -> bool:
        closed = error.code == CONNECTION_CLOSED and error.message == "Connection closed"
        if closed:
            self.signals.end("it does not read what is sent to it")
        return closed

    def _is_on_the_way(self, error: MCPError) -> bool:
        if not self._start.upstream.url or not error.message.startswith(_ON_THE_WAY):
            return False
        if error.message == "Session terminated":
            self.signals.end("it has forgotten our session")
        return True

    def _gone(self, error: MCPError) -> ServerGoneError:
        trouble = self._endpoint.trouble if self._is_on_the_way(error) else ""
        return ServerGoneError(
            self._masks.text(trouble or self.signals.reason or error.message)[:_LONGEST]
        )

    async def end_reason(self) -> str:
        """Why it is gone."""
        known = await self._endpoint.end_reason()
        text = known or self.signals.reason or "it closed the connection"
        return self._masks.text(text)[:_LONGEST]

    async def listen(self) -> None:
        """Ask to hear of changes, in the era where one has to; ends when it need not be asked."""
        tools = self._client.server_capabilities.tools
        if self.protocol not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        pause, longest = _LISTEN_PAUSES
        while True:
            opened = anyio.current_time()
            try:
                async with self._client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        pass
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    return
            except (SubscriptionLost, TimeoutError):
                pass
            if anyio.current_time() - opened > longest:
                pause = _LISTEN_PAUSES[0]
            await anyio.sleep(pause)
            pause = min(pause * 2, longest)
            self.signals.change()  # nobody tells what changed meanwhile


@asynccontextmanager
async def open_connection(start: StartParameters) -> AsyncGenerator[ServerConnection]:
    """A connection for as long as the block runs.

    Raises:
        CannotStartError: it cannot be started, or did not agree; perhaps in a group.
    """
    signals = Signals()
    async with open_endpoint(start, signals.end) as endpoint, AsyncExitStack() as stack:
        messages = MessageFilter(endpoint.messages, on_changed=signals.change, on_end=signals.end)
        client = Client(
            messages,
            mode=start.mode,
            cache=None,
            client_info=_OURSELVES,
        )
        try:
            await stack.enter_async_context(client)
        except Exception as error:
            reason = await endpoint.end_reason() or first_of(error)
            raise HandshakeError(start.environment.masks.text(reason)[:_LONGEST]) from error
        yield ServerConnection(start, client, endpoint, signals)


def first_of(error: BaseException) -> str:
    """What the first of possibly many failures says."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
