"""Servers that do what a server must not: `misbehaving.py FAULT`, one function for each fault."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from tests.features.upstreams.client.servers.rpc import (
        MODERN,
        OBJECT,
        Json,
        Server,
        answer,
        mutter,
        refuse,
        requests,
        say,
        text,
        tool,
    )
else:  # the folder of a script that is run is on the path
    from rpc import MODERN, OBJECT, Json, Server, answer, mutter, refuse, requests, say, text, tool

STRUCTURED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def main(fault: str) -> None:
    globals()[fault.replace("-", "_")]()


def never_greets() -> None:
    for _ in requests():
        pass


def never_answers() -> None:
    """A call of `stuck` is never answered; what is cancelled is told by `cancelled`."""
    cancelled: list[Any] = []

    def on_call(request: Json) -> None:
        if request["params"]["name"] == "cancelled":
            answer(request, text(json.dumps(cancelled)))

    server = Server([tool("stuck"), tool("cancelled")], on_call)
    server.on_other = lambda message: (
        cancelled.append(message["params"]["requestId"])
        if message["method"] == "notifications/cancelled"
        else None
    )
    server.serve()


def freezes() -> None:
    """It stops at the first call, and answers nothing any more."""
    Server([tool("freeze")], lambda _: time.sleep(1_000)).serve()


def dies() -> None:
    def on_call(request: Json) -> None:
        if request["params"]["name"] == "die":
            mutter("about to die: " + os.environ.get("TOKEN", ""))
            os._exit(3)
        answer(request, text(str(os.getpid())))

    Server([tool("die"), tool("pid")], on_call).serve()


def exits() -> NoReturn:
    mutter("first line")
    mutter(f"bad key {os.environ.get('TOKEN')} given" + "!" * 5_000)
    sys.exit(2)


def chats() -> None:
    """Log lines between the messages, some of them nearly JSON."""

    def on_call(request: Json) -> None:
        mutter("[info] calling", sys.stdout)
        mutter('{"not": "a message"}', sys.stdout)
        sys.stdout.buffer.write(b"\xff\xfe\n")
        answer(request, text("heard"))

    mutter("Server starting…", sys.stdout)
    Server([tool("hear")], on_call).serve()


def babbles() -> None:
    """Nothing but garbage, as fast as it can."""
    while True:
        sys.stdout.write("garbage " * 100 + "\n")


def long_line() -> None:
    """A line of 50 MB that belongs to nothing, and then the answer."""

    def on_call(request: Json) -> None:
        for _ in range(50):
            sys.stdout.write("x" * 1_000_000)
        sys.stdout.write("\n")
        answer(request, text("after"))

    Server([tool("shout")], on_call).serve()


def large_result() -> None:
    """10 MB, with the id before it and behind it."""

    def on_call(request: Json) -> None:
        name = request["params"]["name"]
        if name == "first":
            answer(request, text("x" * 10_000_000))
        elif name == "last":
            result = json.dumps(text("x" * 10_000_000))
            sys.stdout.write(f'{{"result":{result},"jsonrpc":"2.0","id":{request["id"]}}}\n')
            sys.stdout.flush()
        else:
            answer(request, text("small"))

    Server([tool("first"), tool("last"), tool("small")], on_call).serve()


def many_tools() -> None:
    Server([tool(f"tool_{n}") for n in range(10_000)], page=500).serve()


def large_page() -> None:
    Server([tool(f"tool_{n}", description="x" * 20_000) for n in range(500)]).serve()


def screams() -> None:
    """Its error stream is written to as fast as it takes it."""

    def scream() -> None:
        while True:
            sys.stderr.write("aaaaargh " * 200 + "\n")

    threading.Thread(target=scream, daemon=True).start()
    Server([tool("one")]).serve()


def dies_listing() -> None:
    class Dying(Server):
        def list(self, request: Json) -> None:
            mutter("cannot list")
            os._exit(4)

    Dying([]).serve()


def lists_once() -> None:
    class Once(Server):
        def list(self, request: Json) -> None:
            super().list(request) if self.tools else refuse(request, -32603, "busy")
            self.tools = []

    Once([tool("one")]).serve()


def endless_pages() -> None:
    class Endless(Server):
        def list(self, request: Json) -> None:
            before = int((request.get("params") or {}).get("cursor") or 0)
            answer(request, {"tools": [tool(f"tool_{before}")], "nextCursor": str(before + 1)})

    Endless([]).serve()


def circling_pages() -> None:
    class Circling(Server):
        def list(self, request: Json) -> None:
            answer(request, {"tools": [tool("again")], "nextCursor": "round"})

    Circling([]).serve()


def odd_tools() -> None:
    doubling: Json = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    odd: list[Any] = [
        tool("good", title="Good", annotations={"readOnlyHint": True, "destructiveHint": "no"}),
        tool("twice"),
        tool("twice", description="Another."),
        {"name": "no_schema", "description": "?"},
        tool("text_schema", inputSchema="object"),
        tool("wrong_type", inputSchema={"type": "nonsense"}),
        tool("broken", inputSchema={"type": "object", "properties": {"a": {"type": 7}}}),
        tool("outside", inputSchema={"type": "object", "$ref": "https://evil.example/schema"}),
        tool(
            "doubling",
            inputSchema={**OBJECT, "$ref": "#/$defs/d0", "$defs": {**doubling, "d40": {}}},
        ),
        tool("bad_output", outputSchema={"type": 7}),
        tool("novel", description="x" * 100_000),
        tool("header", inputSchema={**OBJECT, "properties": {"a": {"x-mcp-header": "a b"}}}),
        tool(""),
        tool("line\nbreak"),
        "no tool",
        None,
        tool("also_good"),
    ]
    Server(odd, page=6).serve()


def renames() -> None:
    """The tool has another name from the first call on."""

    def on_call(request: Json) -> None:
        server.tools = [tool("new_name")]
        if request["params"]["name"] == "new_name":
            answer(request, text("here"))
        else:
            refuse(request, -32602, f"Unknown tool: {request['params']['name']}")

    server = Server([tool("old_name")], on_call)
    server.serve()


def breaks_promises() -> None:
    results: dict[str, Json] = {
        "kept": text("1", structuredContent={"n": 1}),
        "broken": text("one", structuredContent={"n": "one"}),
        "missing": text("1"),
        "failed": text("no such city", isError=True),
        "no_result": {"contents": 1},
        "odd_block": {"content": [{"type": "hologram"}]},
        "huge_number": text("1", structuredContent={"n": 2**70}),
    }
    Server(
        [tool(name, outputSchema=STRUCTURED) for name in results],
        lambda request: answer(request, results[request["params"]["name"]]),
    ).serve()


def reports() -> None:
    """Progress before the answer, and a secret in all it says."""
    token = os.environ.get("TOKEN", "")

    def on_call(request: Json) -> None:
        mark = request["params"].get("_meta", {}).get("progressToken")
        for done in (1, 2):
            params = {
                "progressToken": mark,
                "progress": done,
                "total": 2,
                "message": f"step {token}",
            }
            say(method="notifications/progress", params=params)
        answer(request, text(f"the token is {token}", structuredContent={token: [token]}))

    Server([tool("work", description=f"Uses {token}.")], on_call).serve()


def changes() -> None:
    changing(Server([tool("one")], protocol="2025-11-25"))


def changes_modern() -> None:
    changing(Server([tool("one")], protocol=MODERN))


def changing(server: Server) -> None:
    def on_call(request: Json) -> None:
        server.tools.append(tool(f"tool_{len(server.tools)}"))
        result = text("changed")
        answer(
            request, {**result, "resultType": "complete"} if server.protocol == MODERN else result
        )
        for _ in range(10):
            server.changed()

    server.on_call = on_call
    server.serve()


def floods() -> None:
    """It says that its list changed, as fast as it can; a call tells how often it was asked for."""
    lists = said = 0

    class Flooding(Server):
        def list(self, request: Json) -> None:
            nonlocal lists
            lists += 1
            super().list(request)

    def flood() -> None:
        nonlocal said
        while True:
            server.changed()
            said += 1

    def on_call(request: Json) -> None:
        if request["params"]["name"] == "flood":
            threading.Thread(target=flood, daemon=True).start()
        answer(request, text(f"{lists} {said}"))

    server = Flooding([tool("flood"), tool("counts")], on_call)
    server.serve()


def asks_back() -> None:
    """A call is answered with what the client says to requests of the server."""
    asked = {
        "sampling/createMessage": {"messages": [], "maxTokens": 1},
        "elicitation/create": {
            "message": "Your password?",
            "requestedSchema": {**OBJECT, "properties": {}},
        },
        "roots/list": {},
        "made/up": {},
        "ping": {},
    }
    waiting: list[Json] = []
    answers: Json = {}

    def on_call(request: Json) -> None:
        waiting.append(request)
        for method, params in asked.items():
            say(id=method, method=method, params=params)

    def on_other(message: Json) -> None:
        if message.get("id") in asked:
            answers[message["id"]] = message.get("error", {}).get("message", "answered")
            if len(answers) == len(asked):
                answer(waiting.pop(), text(json.dumps(answers)))

    server = Server([tool("ask")], on_call)
    server.on_other = on_other
    server.serve()


def dislikes_discovery() -> None:
    """It ends at the first message that is not `initialize`, as some real ones do."""
    server = Server([tool("one")], protocol="2024-11-05")
    for message in requests():
        if message["method"] == "server/discover":
            sys.exit("expected initialize")
        server.handle(message)


def stubborn() -> None:
    """It and its child ignore every signal that can be ignored, and the end of the input."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"
    child = subprocess.Popen([sys.executable, "-c", code])  # noqa: S603
    Server([tool("pids")], lambda r: answer(r, text(f"{os.getpid()} {child.pid}"))).serve()
    time.sleep(1_000)


def shows_itself() -> None:
    def on_call(request: Json) -> None:
        answer(request, text(json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd())})))

    Server([tool("show")], on_call).serve()


def slow() -> None:
    """Calls run beside each other until one of them is `release`."""
    waiting: list[Json] = []

    def on_call(request: Json) -> None:
        if request["params"]["name"] == "release":
            for one in waiting:
                answer(one, text("late"))
            waiting.clear()
            answer(request, text("released"))
        else:
            waiting.append(request)

    Server([tool("wait"), tool("release")], on_call).serve()


def deaf() -> None:
    """After the handshake and the list it reads nothing any more."""
    server = Server([tool("one")])
    for message in requests():
        server.handle(message)
        if message["method"] == "tools/list":
            time.sleep(1_000)


if __name__ == "__main__":
    main(sys.argv[1])
