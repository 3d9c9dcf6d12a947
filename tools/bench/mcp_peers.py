"""The peers of `mcp.py`: `python -P mcp_peers.py bare|fastmcp FOLDER http PORT | stdio`.

Both serve the tools of the folder, answer what remit's tools answer, and know nothing of who asks
or what it may. They run as the daemon does: uvicorn, h11, uvloop where it is installed.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

FOLDER = Path(sys.argv[2])


def listed() -> list[dict[str, Any]]:
    """The tools as remit lists them."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "tools.json").read_text(encoding="utf-8"))
    return found


def bare() -> Any:
    """The protocol library alone; it checks no arguments."""
    from mcp.server.lowlevel import Server  # noqa: PLC0415 - only one peer is started
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool  # noqa: PLC0415

    tools = [Tool.model_validate(one) for one in listed()]
    schemas = {one.name: one.input_schema for one in tools}
    answer = json.loads((FOLDER / "answer.json").read_text(encoding="utf-8"))

    async def list_tools(_ctx: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    async def call_tool(_ctx: Any, _params: Any) -> CallToolResult:
        text = json.dumps(answer, separators=(",", ":"))
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=answer
        )

    return Server(
        "bare",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        # Without it the library lists all tools at each call to find the schema of one.
        get_tool_input_schema=schemas.get,
    )


def fastmcp() -> Any:
    """The same functions behind fastmcp, which checks arguments as remit does."""
    from fastmcp import FastMCP  # noqa: PLC0415
    from fastmcp.tools import Tool  # noqa: PLC0415
    from mcp_types import ToolAnnotations  # noqa: PLC0415

    sys.path.append(str(FOLDER))
    from peer_tools import TOOLS  # noqa: PLC0415

    async def other() -> dict[str, Any]:
        """Stand for what every agent of remit has."""
        return {}

    server: Any = FastMCP("fastmcp", version="1")
    for one in listed():
        made = Tool.from_function(
            TOOLS.get(one["name"].removeprefix("bench__"), other),
            name=one["name"],
            description=one["description"],
            annotations=ToolAnnotations.model_validate(one["annotations"]),
            output_schema=None,
        )
        server.add_tool(made.model_copy(update={"parameters": one["inputSchema"]}))
    return server


def serve_http(name: str, server: Any, port: int) -> None:
    """Under /mcp."""
    import uvicorn  # noqa: PLC0415 - not over standard streams

    app = server.http_app("/mcp") if name == "fastmcp" else server.streamable_http_app()
    uvicorn.run(app, port=port, http="h11", access_log=False, log_level="error", ws="none")


async def serve_stdio(name: str, server: Any) -> None:
    """On standard input and output."""
    if name == "fastmcp":
        await server.run_stdio_async(show_banner=False, log_level="ERROR")
        return
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


if __name__ == "__main__":
    made = {"bare": bare, "fastmcp": fastmcp}[sys.argv[1]]()
    if sys.argv[3] == "http":
        serve_http(sys.argv[1], made, int(sys.argv[4]))
    else:
        anyio.run(serve_stdio, sys.argv[1], made)
