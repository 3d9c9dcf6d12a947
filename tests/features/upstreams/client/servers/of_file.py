"""A server whose tools are what a file says at that moment: `of_file.py FILE`.

It writes each start and each call into files beside it, so that a test sees what really arrived.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.features.upstreams.client.servers.rpc import Json, Server, answer, text
else:  # the folder of a script that is run is on the path
    from rpc import Json, Server, answer, text

FILE = Path(sys.argv[1])


def tools() -> list[Json]:
    found: list[Json] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def note(kind: str, what: Any) -> None:
    with FILE.with_suffix(kind).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(what) + "\n")


def call(request: Json) -> None:
    name, arguments = request["params"]["name"], request["params"].get("arguments", {})
    if name not in {tool["name"] for tool in tools()}:
        answer(request, text(f"Unknown tool: {name}", isError=True))
        return
    note(".calls", [name, arguments])
    if name == "fail":
        answer(request, text("it went wrong", isError=True))
        return
    told = f"{name} was called with {json.dumps(arguments)}"
    answer(request, text(told, structuredContent={"arguments": arguments}))


class OfFile(Server):
    """Reads the file for each list."""

    def list(self, request: Json) -> None:
        self.tools = tools()
        super().list(request)


note(".started", "started")
OfFile([], call).serve()
