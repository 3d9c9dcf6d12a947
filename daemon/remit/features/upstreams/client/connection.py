"""One live connection to a server: its list, its calls, and what ends it.

Only what starts a server imports this module: it brings the protocol library.
"""

import logging
import math
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from mcp.client import Client, InputRequiredRoundsExceededError
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    Implementation,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from remit.errors import InvalidDataError, RemitError, TooLargeError, ToolFailedError
from remit.features.upstreams.client.endpoint import (
    SIZE,
    ServerEndpoint,
    open_endpoint,
)
from remit.features.upstreams.client.listing import Page, all_tools
from remit.features.upstreams.client.schema import Checker
from remit.features.upstreams.client.state import (
    CallOutcome,
    HandshakeError,
    Listing,
    Progress,
    SecretMasks,
    ServerGoneError,
    Signals,
    StartParameters,
    has_no_number,
)
from remit.features.upstreams.client.transport import RAW_TOOLS, TOO_LARGE, MessageFilter

_LONGEST = 1_000
_ON_THE_WAY = ("Server returned an error response", "Session terminated", "SSE stream", "Redirect")
_UNKNOWN_TOOL = re.compile(r"unknown tool|tool\b.{0,140}\bnot found", re.IGNORECASE)
_LISTEN_PAUSES = (1.0, 60.0)
_AT_ONCE = 16_384
"""Bytes of an answer that is checked at once; a larger one may take a while, in a thread."""


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


def outcome_of(result: CallToolResult, masks: SecretMasks, *, most: int) -> CallOutcome:
    """An answer as we pass it on.

    Raises:
        TooLargeError: it is larger than is taken.
        ToolFailedError: it cannot be written down.
    """
    content = [
        block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content
    ]
    value: dict[str, Any] = {"content": content}
    if result.structured_content is not None:
        value["structured"] = result.structured_content
    try:
        encoded = msgspec.json.encode(value)
        msgspec.msgpack.encode(value)  # it has no integers beyond 64 bits
    except (UnicodeEncodeError, OverflowError) as error:
        raise _unreadable() from error
    if len(encoded) > most:
        raise too_large(len(encoded), most)
    if has_no_number(value, encoded):
        raise _unreadable()
    clean = masks.value(value, encoded)
    return CallOutcome(
        content=clean["content"],
        structured_content=clean.get("structured"),
        is_error=bool(result.is_error),
    )


def _unreadable() -> RemitError:
    message = "the tool answered text or numbers that cannot be written"
    return ToolFailedError(message, details={"reason": "unreadable"})


def too_large(size: int | None, most: int) -> RemitError:
    """The error for an answer that was not taken."""
    answered = f"{size:,} bytes" if size else "too much"
    return TooLargeError(
        f"the tool answered {answered}; {most:,} bytes are taken",
        hint="ask for less at once",
        details={"reason": "too_large", "limit": most},
    )


async def check_structure(tool: str, outcome: CallOutcome, checker: Checker) -> None:
    """Hold a tool to what it promised.

    Raises:
        ToolFailedError: the answer does not fit the tool's output schema.
    """
    value = outcome.structured_content
    if value is None:
        found = "it has no structured content"
    elif len(msgspec.json.encode(value)) <= _AT_ONCE:
        found = checker.mistake(value)
    else:
        found = await anyio.to_thread.run_sync(checker.mistake, value)
    if not found:
        return
    raise ToolFailedError(
        f"the answer of {tool} does not fit its own output schema: {found}",
        hint="the server breaks its promise: tell whoever runs it",
        details={"reason": "output_schema"},
    )
