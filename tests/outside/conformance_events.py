"""The tools that the MCP conformance suite asks for, as ordinary events.

Nothing here knows MCP but for the blocks of content; a daemon gets this module by the setting
`handlers`, as it would an operator's own.
"""

from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec

from remit.errors import RemitError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5E"
    "rkJggg=="
)
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}

Content = dict[str, Any]
Region = Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]


class MeantError(RemitError):
    """What the suite wants to see fail."""

    code = "test_failed"


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def resource(uri: str, mime: str, said: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": said}}


@event_handler("test:simple_text", tool="test_simple_text", capability="conformance", content=True)
def simple_text() -> Content:
    """Answer a text."""
    return {"content": [text("This is a simple text response for testing.")]}


@event_handler("test:image", tool="test_image_content", capability="conformance", content=True)
def image() -> Content:
    """Answer an image."""
    return {"content": [IMAGE]}


@event_handler("test:audio", tool="test_audio_content", capability="conformance", content=True)
def audio() -> Content:
    """Answer a sound."""
    return {"content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}]}


@event_handler(
    "test:resource", tool="test_embedded_resource", capability="conformance", content=True
)
def embedded() -> Content:
    """Answer a resource."""
    said = "This is an embedded resource content."
    return {"content": [resource("test://embedded-resource", "text/plain", said)]}


@event_handler(
    "test:mixed", tool="test_multiple_content_types", capability="conformance", content=True
)
def mixed() -> Content:
    """Answer a text, an image and a resource."""
    said = '{"test":"data","value":123}'
    data = resource("test://mixed-content-resource", "application/json", said)
    return {"content": [text("Multiple content types test:"), IMAGE, data]}


@event_handler("test:error", tool="test_error_handling", capability="conformance", content=True)
def fail() -> Content:
    """Fail."""
    raise MeantError("This tool intentionally returns an error for testing")


@event_handler(
    "test:progress", tool="test_tool_with_progress", capability="conformance", content=True
)
async def progress(ctx: Context) -> Content:
    """Report progress three times."""
    for done in (0, 50, 100):
        ctx.report(done, 100, f"{done} of 100")
        await anyio.sleep(0.02)
    return {"content": [text("Done, with progress.")]}


@event_handler("test:log", tool="test_logging_tool", capability="conformance", content=True)
def quiet() -> Content:
    """Say nothing beside the answer."""
    return {"content": [text("Nothing was logged.")]}


@event_handler(
    "test:stream", tool="test_streaming_elicitation", capability="conformance", content=True
)
async def stream(ctx: Context) -> Content:
    """Report before the answer; remit asks nothing back of a host."""
    ctx.report(1, 2, "half")
    return {"content": [text("Nobody was asked.")]}


@event_handler("test:header", tool="test_header", capability="conformance", content=True)
def header(region: Region) -> Content:
    """Take an argument that is told in a header too."""
    return {"content": [text(region)]}


@event_handler("test:extra", tool="test_extra", capability="conformance", content=True)
def extra() -> Content:
    """Come and go with `test_trigger_tool_change`."""
    return {"content": [text("Here now.")]}


@event_handler(
    "test:change_tools", tool="test_trigger_tool_change", capability="conformance", content=True
)
async def change_tools(ctx: Context) -> Content:
    """Change the tools of the caller, as an operator would: an edit and a reload."""
    profile = anyio.Path(Path(__file__).parent / "compositions" / "conformance.yaml")
    said = await profile.read_text(encoding="utf-8")
    line = "disallowed_tools: [test:extra]\n"
    edited = said.replace(line, "") if line in said else said + line
    await profile.write_text(edited, encoding="utf-8")
    await ctx.call("config:reload")
    return {"content": [text("The list of tools has changed.")]}


@event_handler(
    "test:change_prompts", tool="test_trigger_prompt_change", capability="conformance", content=True
)
async def change_prompts(ctx: Context) -> Content:
    """Change the prompts of the caller, which are its skills: one comes or goes."""
    folder = Path(__file__).parent
    away, here = (anyio.Path(folder / place / "count-boats") for place in ("kept", "skills"))
    await (here.rename(away) if await here.exists() else away.rename(here))
    await ctx.call("discovery:refresh")
    return {"content": [text("The list of prompts has changed.")]}


@event_handler("test:add", tool="test_add", capability="conformance", effect="read")
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers; the answer is data and no content."""
    return {"sum": a + b}
