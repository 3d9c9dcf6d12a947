"""A site with upstream servers: what they say, what reached them and what is decided about them."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.site import Daemon, Site
from tests.features.upstreams.client.clients import SERVERS

SERVER = SERVERS / "of_file.py"
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PROFILE = "capabilities: [outside]\n"
CAPABILITY = """
  outside:
    description: What is let in from outside
    event_patterns: ["mcp:*"]
"""
Tool = dict[str, Any]


def tool(name: str, description: str = "", schema: Tool | None = None) -> Tool:
    return {
        "name": name,
        "description": description or f"Does {name} for you.",
        "inputSchema": schema or {"type": "object"},
    }


class Outside:
    """A site with upstream servers, each with a file that says what its tools are."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.entries: dict[str, Any] = {}
        site.home.mkdir(mode=0o700)
        with site.catalogue.open("a", encoding="utf-8") as catalogue:
            catalogue.write(CAPABILITY)
        site.add_profile("borrower", PROFILE)

    def file(self, server: str) -> Path:
        return self.site.folder / f"{server}.json"

    def says(self, server: str, *tools: Tool) -> None:
        """What a server lists from now on, in one step."""
        beside = self.file(server).with_suffix(".new")
        beside.write_text(json.dumps(tools), encoding="utf-8")
        beside.replace(self.file(server))

    def add(self, server: str, *tools: Tool, **entry: Any) -> None:
        self.says(server, *tools)
        command = {"command": sys.executable, "args": ["-S", str(SERVER), str(self.file(server))]}
        self.entries[server] = {**command, "trust": "on_first_use", **entry}
        self.write()

    def write(self) -> None:
        text = json.dumps({"version": 1, "upstreams": self.entries})
        beside = self.site.folder / "beside"
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.site.home / "upstreams.yaml")

    def calls(self, server: str) -> list[Any]:
        """What has really reached a server."""
        file = self.file(server).with_suffix(".calls")
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def starts(self, server: str) -> int:
        file = self.file(server).with_suffix(".started")
        return len(file.read_text().splitlines()) if file.exists() else 0


class Shared(Outside):
    """The same beside a daemon that runs already; nothing of one test is left for the next."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._daemon: Daemon | None = None

    @contextmanager
    def running(self) -> Generator["Shared"]:
        """Run the daemon that tests share."""
        with self.site.serving() as self._daemon:
            yield self

    @contextmanager
    def serving(self) -> Generator[Daemon]:
        """Put in force what was added, and take it away in the end."""
        assert self._daemon is not None
        ask(self._daemon, "config:reload")
        try:
            yield self._daemon
        finally:
            self.forget(self._daemon)

    def forget(self, daemon: Daemon) -> None:
        """Remove all servers and what is known of them."""
        servers = [*self.entries]
        self.entries.clear()
        self.write()
        ask(daemon, "config:reload")
        for server in servers:
            (self.site.home / "upstreams" / f"{server}.json").unlink(missing_ok=True)
            for beside in self.site.folder.glob(f"{server}.*"):
                beside.unlink()


def ask(daemon: Daemon, event: str, /, **data: Any) -> Any:
    with daemon.operator() as operator:
        return operator.call(event, data)


def waiting(daemon: Daemon, status: str = "pending") -> dict[str, Any]:
    found = ask(daemon, "review:list", kind="tool", status=status)["items"]
    return {item["id"]: item for item in found}


def approve(daemon: Daemon, id_: str) -> Any:
    return ask(daemon, "review:decide", id=id_, decision="approve")


def served(daemon: Daemon) -> set[str]:
    with daemon.operator() as operator:
        items = operator.call("upstream:list")["items"]
    return {tool["event"] for item in items for tool in item["tools"] if tool["served"]}
