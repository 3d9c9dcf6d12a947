"""Answers as results of a tool call: for a model to read, and for a program to use."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from remit.faces.mcp.caller import OnProgress
from remit.faces.mcp.toolset import Tool
from remit_client.wire import Answer, Failure, Progress

DECISION = "remit/decision"
CODE = "remit/code"
REVISION = "remit/revision"
"""The revision that a list follows from."""
WARNINGS = "remit/warnings"
"""What will not work for ever, such as an old name."""
_DONE = "done"
COMPLETE = {"resultType": "complete"}
"""What every result says from 2026-07-28 on; earlier eras drop it."""


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


# Progress of a call, told to the host that asked for it.


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
