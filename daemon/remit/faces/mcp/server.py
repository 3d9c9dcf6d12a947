"""The MCP server: lists, calls and news, each by asking an event for the caller.

One server serves every caller and both eras of the protocol. It keeps nothing that decides: what a
name means is remembered as the host was shown it, whether it may be used is asked at every call.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import msgspec
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    PaginatedRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

from remit import __version__
from remit.faces.mcp.listeners import SKILL_LIST, TOOL_LIST, Anything, Listeners
from remit.faces.mcp.skills import serve_skills, skills_of
from remit.faces.mcp.tools import (
    COMPLETE,
    REVISION,
    McpCaller,
    Tool,
    Toolset,
    Wire,
    failure_result,
    fetch_tool,
    fetch_toolset,
    id_in,
    is_refusal,
    reporting,
    result_of,
    text_result,
    unknown_tool,
    unwrapped,
)
from remit.model.descriptor import CALL_TOOL, META_TOOL, tool_id
from remit.model.event import SEARCH
from remit_client.wire import Answer, Failure

PAGE = 1_000
DESCRIBE = "discovery:describe"
_MOST = 10_000
"""Callers whose tools are remembered; the oldest goes first."""
_LISTS = 256
"""Lists that are kept as they go out."""
INSTRUCTIONS = (
    "remit checks every call against what this agent may do. Tools that are not listed may be"
    f" found with {META_TOOL}. A refusal says why and what to do."
)

_NOT_WRAPPED = Failure("invalid_data", f"{CALL_TOOL} wants {{name: text, arguments?: object}}")


class McpServer:
    """Serves MCP; `server` is what the library runs."""

    def __init__(self, caller_of: Callable[[Anything], McpCaller]) -> None:
        """Put the server together.

        Args:
            caller_of: whom a request comes from.
        """
        self._caller_of = caller_of
        self.calling: ContextVar[str] = ContextVar("calling", default="")
        """Who asks, where the library does not say."""
        self._listing: ContextVar[tuple[list[Wire], int]] = ContextVar("listing")
        """What this request is listed, and the revision it follows from."""
        self._toolsets: dict[str, Toolset] = {}
        self._found: dict[str, tuple[str, ...]] = {}
        self._results: dict[tuple[str, str, bytes, int], HandlerResult] = {}
        self.listeners = Listeners(self._look)
        self.server = _Server(
            "remit",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,  # type: ignore[arg-type]
            on_call_tool=self._call_tool,  # type: ignore[arg-type]
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=self._schema_of,
        )
        if not _is_traced():
            self.server.middleware.clear()  # the library would make spans that nobody collects
        self.server.middleware.append(self._keep_lists)
        serve_skills(self.server, caller_of, self.listeners, self._look)

    def changed(self, name: str) -> None:
        """Say that the lists of a caller may have changed; never waits."""
        self._toolsets.pop(name, None)
        self.listeners.changed(name)

    def forget(self, name: str) -> None:
        """Drop everything about a caller that was shut out."""
        self._toolsets.pop(name, None)
        self._found.pop(name, None)
        self.listeners.forget(name)

    async def _keep_lists(self, ctx: Anything, call_next: CallNext) -> HandlerResult:
        """Answer a list from memory when it is the same, byte for byte, as one before.

        The library checks a list against the schema of the protocol, tool by tool, each time; that
        costs more than all the rest.
        """
        if ctx.method != "tools/list":
            return await call_next(ctx)
        caller = self._caller_of(ctx)
        # Of a list in pages the first one counts as all of it.
        is_first = not (ctx.params or {}).get("cursor")
        listed, revision = await self._listed(caller, shown=is_first)
        seen = fingerprint(listed)
        self.listeners.shown(ctx, caller, TOOL_LIST, seen)
        self._listing.set((listed, revision))
        key = (ctx.protocol_version, str((ctx.params or {}).get("cursor")), seen, revision)
        if key not in self._results:
            remember(self._results, key, await call_next(ctx), most=_LISTS)
        return self._results[key]

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        """What the library compares headers with; only a tool that the caller was listed."""
        toolset = self._toolsets.get(self.calling.get())
        tool = None if toolset is None else toolset.tools.get(name)
        return None if tool is None else tool.wire["inputSchema"]

    async def _list_tools(
        self, ctx: Anything, params: PaginatedRequestParams | None
    ) -> dict[str, Any]:
        del ctx
        listed, revision = (
            self._listing.get()
        )  # not asked for again: it would be kept as what it is no more
        start = _offset(params.cursor if params else None)
        result: dict[str, Any] = {"tools": listed[start : start + PAGE]}
        if start + PAGE < len(listed):
            result["nextCursor"] = str(start + PAGE)
        # A list belongs to one caller, and is old the moment it is made.
        private = {"ttlMs": 0, "cacheScope": "private", "_meta": {REVISION: revision}}
        return result | COMPLETE | private

    async def _listed(self, caller: McpCaller, *, shown: bool = False) -> tuple[list[Wire], int]:
        toolset = await self._fetch(caller, shown=shown)
        if (problem := toolset.problem) is not None:
            # An empty list would tell the host that there is nothing.
            message, hint = f"{problem.message} [{problem.code}]", problem.hint
            raise MCPError(INTERNAL_ERROR, message, {"code": problem.code, "hint": hint})
        return toolset.listed(self._found.get(caller.name, ())), toolset.revision

    async def _fetch(self, caller: McpCaller, *, shown: bool = False) -> Toolset:
        found = self._found.get(caller.name, ()) if shown else None
        toolset = await fetch_toolset(caller, found)
        if toolset.problem is None:
            remember(self._toolsets, caller.name, toolset)
        return toolset

    async def _with(self, caller: McpCaller, name: str) -> Toolset:
        """The tools of a caller; asked for again when no such name was listed."""
        known = self._toolsets.get(caller.name)
        return known if known is not None and known.has(name) else await self._fetch(caller)

    async def _call_tool(self, ctx: Anything, params: CallToolRequestParams) -> dict[str, Any]:
        caller = self._caller_of(ctx)
        name, arguments = params.name, params.arguments or {}
        if name in (META_TOOL, CALL_TOOL):
            toolset = await self._with(caller, name)
            if toolset.searchable and name == META_TOOL:
                return await self._search(caller, toolset, arguments)
            if toolset.searchable:
                return await self._call_inner(ctx, caller, arguments)
        return await self._call_named(ctx, caller, name, arguments)

    async def _call_inner(
        self, ctx: Anything, caller: McpCaller, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """The call inside of a `call_capability`; what cannot be called is described."""
        inner = unwrapped(arguments)
        if inner is None:
            return failure_result(_NOT_WRAPPED)
        name, arguments = inner
        id_ = id_in(name)
        if id_ is not None and self._known(caller, name) is None:
            about = await self._describe(caller, id_)
            if about is not None and not about["event"]:
                return text_result(about["prompt"])
            if about is not None:
                name = about["event"]  # a manifest gives an event a name of its own
        return await self._call_named(ctx, caller, name, arguments)

    async def _call_named(
        self, ctx: Anything, caller: McpCaller, name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Call what a name means; the daemon refuses, and writes down, what means nothing."""
        tool = self._known(caller, name)
        if tool is None:
            found = await fetch_tool(caller, name)
            if not isinstance(found, Tool):
                return _not_found(found, name)
            tool = found
        return await self._call(ctx, caller, name, tool, arguments)

    def _known(self, caller: McpCaller, name: str) -> Tool | None:
        """The tool of a name as the caller was listed it: a name never changes its event."""
        toolset = self._toolsets.get(caller.name)
        return None if toolset is None else toolset.find(name)

    async def _call(
        self, ctx: Anything, caller: McpCaller, name: str, tool: Tool, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        async with reporting(ctx) as progress:
            answer = await caller.ask(tool.event, arguments, progress=progress)
        if is_refusal(answer, tool.event):
            raise unknown_tool(name)
        return result_of(answer, tool)

    async def _search(
        self, caller: McpCaller, toolset: Toolset, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if (id_ := id_in(arguments.get("query"))) is not None:
            about = await self._describe(caller, id_)
            if about is not None:
                return text_result(about["prompt"])
        answer = await caller.ask(SEARCH, {**arguments, "render": True, "host": True})
        if is_refusal(answer, SEARCH):
            raise unknown_tool(META_TOOL)
        if answer.error is not None:
            return failure_result(answer.error, answer.decision)
        events = {tool_id(tool.event): tool.event for tool in toolset.tools.values()}
        hits = [one["id"] for one in answer.data["capabilities"]]
        found = tuple(events[hit] for hit in hits if hit in events)
        if toolset.exposure == "turn" and found != self._found.get(caller.name):
            remember(self._found, caller.name, found)
            self.listeners.changed(caller.name)
        return text_result(answer.data["prompt"])

    @staticmethod
    async def _describe(caller: McpCaller, id_: str) -> dict[str, Any] | None:
        """Everything about one thing that discovery finds; None when it finds no such thing."""
        answer = await caller.ask(DESCRIBE, {"id": id_, "render": True})
        return None if answer.error is not None else answer.data

    async def _listen(
        self, ctx: Anything, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await self.listeners.listen(ctx, self._caller_of(ctx), params)

    async def _look(self, caller: McpCaller, kind: str) -> bytes:
        if kind == SKILL_LIST:
            return fingerprint(await skills_of(caller).everything())
        return fingerprint((await self._listed(caller))[0])


def _not_found(answer: Answer, name: str) -> dict[str, Any]:
    """What a host hears of a name that means nothing to its caller.

    Raises:
        MCPError: there is no such tool for it.
    """
    error = answer.error
    if error is None or error.code in ("denied", "unknown_event"):
        raise unknown_tool(name)
    return failure_result(error, answer.decision)


class _Server(Server[Any]):
    """The library's server, that says in both eras that its lists change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Who we are, for a host that opens a session."""
        changing = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(
            notification_options or changing, experimental_capabilities, extensions
        )


def _is_traced() -> bool:
    """Tell whether spans go anywhere: a handler module may have set that up."""
    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):  # noqa: PLR2004
        raise MCPError(INVALID_PARAMS, "that is no cursor of ours")
    return int(cursor)


def fingerprint(listed: Any) -> bytes:
    """What two equal lists share."""
    return hashlib.sha256(msgspec.json.encode(listed)).digest()


def remember(known: dict[Any, Any], key: Any, value: Any, *, most: int = _MOST) -> None:
    """Keep something; of too much the oldest is dropped."""
    known.pop(key, None)
    if len(known) >= most:
        known.pop(next(iter(known)))
    known[key] = value
