"""A link to an upstream server as the conformance suite starts it: conformance_client.py URL.

It lists the tools of the server and calls each one, as a daemon does for agents that ask.
"""

import json
import os
import sys
from typing import Any

import anyio

from remit.errors import RemitError
from remit.features.upstreams.client.client import UpstreamClient
from remit.features.upstreams.client.state import Listing
from remit.model.upstream import Upstream, UpstreamTool

EXAMPLES = {"integer": 2, "number": 2, "boolean": True, "string": "text", "object": {}, "array": []}


def arguments_for(tool: UpstreamTool, listing: Listing) -> dict[str, Any]:
    """Something that fits the schema; one tool wants to see what arrived of another's."""
    fields = tool.input_schema.get("properties", {})
    wanted = tool.input_schema.get("required", [])
    arguments = {name: EXAMPLES.get(fields[name].get("type")) for name in wanted}
    return (
        arguments | {"schema": listing.tools[0].input_schema} if "schema" in wanted else arguments
    )


def calls_of(listing: Listing) -> list[tuple[str, dict[str, Any]]]:
    """What the suite asks for, else every tool once."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if "toolCalls" in context:
        return [(one["name"], one["arguments"]) for one in context["toolCalls"]]
    return [(tool.name, arguments_for(tool, listing)) for tool in listing.tools]


async def heard(listing: Listing) -> None:
    """The suite looks at what is sent; what is listed is of no use here."""


async def main(url: str) -> None:
    link = UpstreamClient(Upstream(name="suite", url=url), secret=lambda _: None, on_listed=heard)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(link.run)
        for name, arguments in calls_of(await link.refresh()):
            try:
                await link.call(name, arguments)
            except RemitError as error:
                print(f"{name}: {error}", file=sys.stderr)  # noqa: T201 - for whoever runs it
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
