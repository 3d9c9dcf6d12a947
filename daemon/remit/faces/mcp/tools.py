"""The tools of one caller as a host lists them, and answers of events as results of tool calls.

What is listed is what the daemon answers about this caller now, from its live grant and whatever it
may ask for itself, so the list never shows more than may be used. `exposure` says how much of it
stands in the list; the rest is found by asking. A result has a form for a model to read, and one
for a program to use.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Protocol

import anyio
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from remit.kernel.dispatch.own_requests import TOOL, TOOLS
from remit.kernel.dispatch.tool_list import host_tools
from remit.model.descriptor import CALL_TOOL, DESCRIPTOR_KINDS, META_TOOL, tool_id
from remit_client.wire import Answer, Failure, Progress

OnProgress = Callable[[Progress], None]
Place = tuple[str, str | None]
"""A name and the session that narrows its calls."""
Wire = dict[str, Any]
"""A tool as it stands in `tools/list`."""
_EMPTY = MappingProxyType({"tools": (), "exposure": "all", "searchable": False})
DECISION = "remit/decision"
CODE = "remit/code"
REVISION = "remit/revision"
"""The revision that a list follows from."""
WARNINGS = "remit/warnings"
"""What will not work for ever, such as an old name."""
_DONE = "done"
COMPLETE = {"resultType": "complete"}
"""What every result says from 2026-07-28 on; earlier eras drop it."""
_WAITING = 64
"""Reports that wait for a slow host; later ones are dropped, the result is not."""


class McpCaller(Protocol):
    """Somebody who asks."""

    @property
    def name(self) -> str:
        """Who it is."""

    @property
    def place(self) -> Place:
        """Who it is, and where: in a session less may be listed."""

    async def ask(
        self, event: str, data: Any = None, *, progress: OnProgress | None = None
    ) -> Answer:
        """The answer of an event, good or bad; raises nothing of its own."""


class Tool(msgspec.Struct, frozen=True, eq=False):
    """One tool and the event behind it."""

    event: str
    wire: Wire
    content: bool = False
    """Whether its answers are content blocks already."""
    warnings: Sequence[dict[str, str]] = ()
    """What is said with each answer: that it was named by an old name."""


class Toolset(msgspec.Struct, frozen=True, eq=False):
    """Every tool that one caller may be shown, by name."""

    tools: Mapping[str, Tool] = {}
    told: Mapping[str, Any] = _EMPTY
    """What the daemon answered."""
    problem: Failure | None = None
    """Why the list is not known just now."""
    revision: int = 0

    @property
    def exposure(self) -> str:
        """How much of it stands in the list."""
        return str(self.told["exposure"])

    @property
    def searchable(self) -> bool:
        """Tell whether the caller may search."""
        return bool(self.told["searchable"])

    def find(self, name: str) -> Tool | None:
        """The tool of that name, of that event, or of the id that discovery prints."""
        found = self.tools.get(name)
        if found is None and ":" in name:
            meant = (name, name.removeprefix(tool_id("")))
            found = next((tool for tool in self.tools.values() if tool.event in meant), None)
        return found

    def has(self, name: str) -> bool:
        """Tell whether a call of that name means something."""
        return (self.searchable and name in (META_TOOL, CALL_TOOL)) or self.find(name) is not None

    def listed(self, found: Iterable[str] = ()) -> list[Wire]:
        """What a host lists; `found` are the events of the last search, for the mode `turn`."""
        return [_wire(one) for one in host_tools(self.told, found)]


async def fetch_toolset(caller: McpCaller, listed: Iterable[str] | None = None) -> Toolset:
    """Ask for the tools of a caller.

    Args:
        caller: whose tools.
        listed: when its host puts them before a model, the events of its last search.
    """
    answer = await caller.ask(
        TOOLS, None if listed is None else {"listed": True, "found": list(listed)}
    )
    if answer.error is not None:
        return Toolset(problem=answer.error)
    data = answer.data
    tools = {one["name"]: _tool(one) for one in data["tools"]}
    return Toolset(tools, data, revision=data["revision"])


async def fetch_tool(caller: McpCaller, name: str) -> Tool | Answer:
    """The tool that a caller means by a name; else a refusal, which was written down."""
    answer = await caller.ask(TOOL, {"name": name})
    if answer.error is not None:
        return answer
    return msgspec.structs.replace(_tool(answer.data["tool"]), warnings=answer.warnings)


def id_in(text: Any) -> str | None:
    """The id of something that discovery finds, if a text is one; it may be of nothing."""
    if not isinstance(text, str) or any(char.isspace() for char in text.strip()):
        return None
    kind, colon, rest = text.strip().partition(":")
    return text.strip() if colon and rest and kind in DESCRIPTOR_KINDS else None


def unwrapped(arguments: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The call inside of a `call_capability`; None when there is none."""
    name, inner = arguments.get("name"), arguments.get("arguments")
    inner = {} if inner is None else inner  # models like to say null
    return (name, inner) if isinstance(name, str) and isinstance(inner, dict) else None


def is_refusal(answer: Answer, event: str) -> bool:
    """Tell whether the caller may not use the event at all, or there is no such event."""
    error = answer.error
    if error is None or error.code not in ("denied", "unknown_event"):
        return False
    # A handler may refuse something about its arguments: that is no secret, and has a reason.
    return error.code == "unknown_event" or error.details.get("event") == event


def result_of(answer: Answer, tool: Tool) -> dict[str, Any]:
    """The result of a call."""
    if answer.error is not None:
        return failure_result(answer.error, answer.decision)
    data = answer.data
    try:
        text = msgspec.json.encode(data).decode()
        # Read back: inside of the daemon an answer may still hold values of our own types.
        plain = msgspec.json.decode(text)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return failure_result(
            Failure("internal", f"the answer has no form: {error}"), answer.decision
        )
    result: dict[str, Any]
    if tool.content and isinstance(plain, dict):
        result = {"content": plain.get("content", [])}
        if plain.get("structured_content") is not None:
            result["structuredContent"] = plain["structured_content"]
    else:
        result = {"content": [_text(_DONE if data is None else text)]}
        if isinstance(plain, dict):
            result["structuredContent"] = plain
    return result | COMPLETE | _meta(answer.decision, warnings=[*tool.warnings, *answer.warnings])


def failure_result(error: Failure, decision: str = "") -> dict[str, Any]:
    """A failure that the model can read: what went wrong, and how to go on."""
    said = error.details.get("content") if error.code == "tool_failed" else None
    hint = f"\n{error.hint}" if error.hint else ""
    content = said or [_text(f"{error.message} [{error.code}]{hint}")]
    return {"content": content, "isError": True} | COMPLETE | _meta(decision, code=error.code)


def unknown_tool(name: str) -> MCPError:
    """The same whether there is no such tool, or only not for this caller."""
    data = {"hint": "list the tools again; an operator can see why: remit why AGENT EVENT"}
    return MCPError(INVALID_PARAMS, f"Unknown tool: {name[:128]}", data)


def text_result(text: str) -> dict[str, Any]:
    """A result that is one text."""
    return {"content": [_text(text)]} | COMPLETE


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


def _tool(one: Mapping[str, Any]) -> Tool:
    return Tool(one["event"], _wire(one), one["content"])


def _wire(one: Mapping[str, Any]) -> Wire:
    wire: Wire = {"name": one["name"]}
    if one.get("title"):
        wire["title"] = one["title"]
    wire |= {"description": one["description"], "inputSchema": _schema(one["input_schema"])}
    if one.get("output_schema"):
        wire["outputSchema"] = one["output_schema"]
    wire["annotations"] = one["annotations"]
    return wire


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Hosts want the schema of an object, even of one without fields."""
    return schema if schema.get("type") == "object" else {"type": "object", **schema}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _meta(
    decision: str, *, code: str = "", warnings: Sequence[dict[str, str]] = ()
) -> dict[str, Any]:
    marks: dict[str, Any] = {CODE: code} if code else {}
    if decision:
        marks[DECISION] = decision
    if warnings:
        marks[WARNINGS] = list(warnings)
    return {"_meta": marks} if marks else {}
