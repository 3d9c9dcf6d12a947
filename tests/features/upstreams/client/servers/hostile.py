"""Servers that want to do harm: `hostile.py DEED`, one function for each."""

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.features.upstreams.client.servers.rpc import OBJECT, Json, Server, answer, text, tool
else:  # the folder of a script that is run is on the path
    from rpc import OBJECT, Json, Server, answer, text, tool


def main(deed: str) -> None:
    globals()[deed.replace("-", "_")]()


def raw(request: Json, result: str) -> None:
    """An answer that `json` would not write."""
    sys.stdout.write(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{result}}}\n')
    sys.stdout.flush()


def wide(name: str, size: int) -> Json:
    """A tool of about so many bytes."""
    properties = {f"property_{n}": {"type": "string"} for n in range(size // 35)}
    return tool(name, inputSchema={**OBJECT, "properties": properties})


def lists_much() -> None:
    """Pages without end, each of 200 KB; how many were asked for is told by a call."""
    asked = 0

    class Endless(Server):
        def list(self, request: Json) -> None:
            nonlocal asked
            asked += 1
            before = int((request.get("params") or {}).get("cursor") or 0)
            tools = [wide(f"tool_{before}_{n}", 50_000) for n in range(4)]
            answer(request, {"tools": tools, "nextCursor": str(before + 1)})

    Endless([], lambda request: answer(request, text(str(asked)))).serve()


def wide_tool() -> None:
    icon = {"src": "data:image/png;base64," + "A" * 400_000}
    Server([wide("wide", 400_000), tool("narrow"), tool("painted", icons=[icon])]).serve()


def names_its_secret() -> None:
    Server([tool(f"get_{os.environ['TOKEN']}"), tool("plain")]).serve()


def no_numbers() -> None:
    """What Python reads of JSON and nobody else does."""
    results = {
        "number": '{"content":[],"structuredContent":{"a":[{"n":NaN}]}}',
        "infinite": '{"content":[],"structuredContent":{"n":1e999}}',
        "nothing": '{"content":[],"structuredContent":{"n":null}}',
        "told": '{"content":[{"type":"text","text":"NaN"}]}',
    }

    def on_call(request: Json) -> None:
        mark = json.dumps(request["params"].get("_meta", {}).get("progressToken"))
        for done, total in (("NaN", "1"), ("1", "Infinity"), ("-Infinity", "null"), ("2", "3")):
            params = f'{{"progressToken":{mark},"progress":{done},"total":{total}}}'
            line = f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}\n'
            sys.stdout.write(line)
        raw(request, results[request["params"]["name"]])

    class Odd(Server):
        def list(self, request: Json) -> None:
            odd: list[Any] = [
                tool("by_default", inputSchema={**OBJECT, "properties": {"n": {"default": "@"}}}),
                *self.tools,
            ]
            raw(request, json.dumps({"tools": odd}).replace('"@"', "NaN"))

    Odd([tool(name) for name in results], on_call).serve()


def changes_a_number() -> None:
    """With each call the default is written otherwise, and the change is told."""

    def one(default: Any) -> Json:
        return tool("one", inputSchema={**OBJECT, "properties": {"n": {"default": default}}})

    def on_call(request: Json) -> None:
        server.tools = [one(defaults.pop())]
        server.changed()
        answer(request, text("changed"))

    defaults = [1.0, True]
    server = Server([one(1)], on_call)
    server.serve()


if __name__ == "__main__":
    main(sys.argv[1])
