"""The answers of events have the fields that the reference names."""

import json
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import ROOT, codes, sections
from tests.docs.terminal import Terminal, open_terminal

import remit_client.sync
from remit.config.definitions.files import starter_dir
from remit_client.keys import new_key

EXTENSION = "extensions: [{name: tides, description: Predicts tides, module: tides}]"
MODULE = """
from remit.kernel.dispatch.registry import event_handler


@event_handler("tide:predict", effect="read")
async def predict() -> None:
    'Predict.'
"""
SKILL = "---\nname: review\ndescription: Review a text\n---\nRead it twice.\n"
CARD = "---\nid: tides\nname: T\ndescription: D\ntriggers: {keywords: [tide]}\n---\nTwice a day.\n"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("agent:spawn", {"profile": "communicator", "agent_id": "ann"}),
    ("agent:list", {}),
    ("agent:send_message", {"agent_id": "ann", "message": "hello"}),
    ("agent:status", {"agent_id": "ann"}),
    ("agent:runtime", {"agent_id": "ann", "query": "talk"}),
    ("agent:update", {"agent_id": "ann", "profile": "minimal"}),
    ("agent:terminate", {"agent_id": "ann"}),
    ("audit:query", {}),
    ("audit:verify", {}),
    ("awareness:select", {"messages": ["keep it in the shared state"]}),
    ("awareness:inject", {"files": [], "messages": ["keep it in the shared state"]}),
    ("awareness:cards", {}),
    ("awareness:read", {"id": "remit-state"}),
    ("awareness:put", {"card": CARD}),
    ("awareness:remove", {"id": "tides"}),
    ("awareness:refresh", {}),
    ("awareness:outcome", {"useful": True}),
    ("awareness:outcomes", {}),
    ("awareness:switch", {"on": True}),
    ("bill:query", {}),
    ("capability:create", {"id": "notes", "description": "d", "event_patterns": ["state:get"]}),
    ("capability:update", {"id": "notes", "system_prompt": "Take notes."}),
    ("capability:get", {"id": "notes"}),
    ("capability:get", {"id": "web_fetch"}),
    ("capability:remove", {"id": "notes"}),
    ("capability:list", {}),
    ("capability:of_event", {"event": "state:get"}),
    ("composition:get", {"name": "observer"}),
    ("composition:list", {}),
    ("composition:migrate", {"name": "base_multi_agent_explicit"}),
    ("composition:plan", {}),
    ("composition:resolve", {"profile": "observer"}),
    ("composition:resolve", {"profile": "observer", "max_effect": "read"}),
    ("composition:resolve", {"profile": "teacher"}),
    ("composition:validate", {}),
    ("config:plan", {}),
    ("config:reload", {}),
    ("conversation:active", {}),
    ("conversation:create", {}),
    ("discovery:discover", {"query": "keep a value"}),
    ("discovery:discover", {"query": "keep a value", "render": True}),
    ("discovery:tools", {"query": "keep a value"}),
    ("discovery:describe", {"id": "tool:state:set", "render": True}),
    ("discovery:feedback", {"id": "tool:state:set", "worked": True, "query": "keep a value"}),
    ("discovery:stats", {}),
    ("discovery:refresh", {}),
    ("discovery:examples", {}),
    ("discovery:forget", {}),
    ("event:subscribe", {"patterns": ["state:*"]}),
    ("event:unsubscribe", {"patterns": ["state:*"]}),
    ("extension:list", {}),
    ("extension:load", {"id": "tides"}),
    ("extension:unload", {"id": "tides"}),
    ("file:write_file", {"path": "/a/b", "content": "hello"}),
    ("file:read_file", {"path": "/a/b"}),
    ("file:list_directory", {}),
    ("file:grep_files", {"pattern": "h"}),
    ("file:stat_file", {"path": "/a/b"}),
    ("file:delete_file", {"path": "/a/b"}),
    ("key:add", {"name": "eve", "public_key": new_key("eve").public_key, "profile": "minimal"}),
    ("key:list", {}),
    ("key:revoke", {"name": "eve"}),
    ("key:token", {}),
    ("key:tokens", {}),
    ("key:revoke_token", {"id": "the one that was made"}),
    ("math:add", {"a": 1, "b": 2}),
    ("math:subtract", {"a": 1, "b": 2}),
    ("math:multiply", {"a": 1, "b": 2}),
    ("math:divide", {"a": 1, "b": 2}),
    ("message:publish", {"channel": "team", "data": 1}),
    ("message:subscribe", {"channels": ["team"]}),
    ("message:subscriptions", {}),
    ("message:unsubscribe", {"channels": ["team"]}),
    ("permission:check", {"event": "state:get"}),
    ("permission:check_many", {"events": ["state:get"]}),
    ("permission:explain", {"event": "state:get", "profile": "minimal"}),
    ("permission:explain", {"event": "state:get"}),
    ("permission:matrix", {}),
    ("permission:who_can", {"event": "state:get"}),
    ("link:mission", {"needs": ["state:get", "bake bread"], "bind": True}),
    ("mission:end", {"mission": "the one that was linked"}),
    ("registry:health", {}),
    ("registry:mark", {"id": "tool:state:get", "healthy": True}),
    ("registry:search", {"query": "keep a value"}),
    ("review:list", {}),
    ("review:decide", {"id": "orchestrator/network_access", "decision": "approve"}),
    ("session:open", {"session": "calm", "max_effect": "read"}),
    ("session:narrow", {"session": "calm", "disallowed_tools": ["key:list"]}),
    ("session:list", {}),
    ("session:close", {"session": "calm"}),
    ("skill:list", {}),
    ("skill:read", {"id": "review"}),
    ("skill:register", {"id": "skill:review", "tags": ["text"]}),
    ("skill:resolve", {"tags": ["text"]}),
    ("skill:review", {"id": "skill:review", "reason": "it is old"}),
    ("skill:update", {"id": "skill:review", "version": "2"}),
    ("state:set", {"key": "a", "value": 1}),
    ("state:get", {"key": "a"}),
    ("state:list", {}),
    ("state:delete", {"key": "a"}),
    ("system:discover", {"level": "full"}),
    ("system:discover", {"level": "namespace", "format": "ultra_compact"}),
    ("system:discover", {"format": "mcp"}),
    ("system:health", {}),
    ("system:help", {"event": "state:get"}),
    ("system:help", {"event": "state:get", "format": "compact"}),
    ("system:help", {"event": "state:get", "format": "mcp"}),
    ("system:help", {}),
    ("system:help", {"format": "ultra_compact"}),
    ("system:help", {"format": "mcp"}),
    ("system:stats", {}),
    ("time:get_current_time", {}),
    ("todo:write_todos", {"todos": []}),
    ("tool:list", {}),
    ("tool:register", {"id": "tool:state:get", "tags": ["text"]}),
    ("tool:resolve", {"capability": "state:get"}),
    ("upstream:list", {}),
    ("upstream:check", {"name": "notes"}),
    ("upstream:refresh", {}),
    ("weather:get_forecast", {"city": "Oslo"}),
    ("weather:get_weather", {"city": "Oslo"}),
    ("web:web_fetch", {"url": "http://127.0.0.1:PORT/"}),
]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    terminal: Terminal
    with open_terminal() as terminal:
        folder = terminal.home / ".config" / "remit" / "capabilities"
        folder.mkdir(parents=True)
        (folder / "extensions.yaml").write_text(EXTENSION, encoding="utf-8")
        (folder / "tides.py").write_text(MODULE, encoding="utf-8")
        (folder / "review").mkdir()
        (folder / "review" / "SKILL.md").write_text(SKILL, encoding="utf-8")
        profiles = terminal.home / "profiles"
        shutil.copytree(starter_dir() / "compositions", profiles)
        (profiles / "teacher.yaml").write_text("name: teacher\ntrust: true\n", encoding="utf-8")
        add_server(terminal.home)
        terminal.run(
            f"remit serve --extension-modules tides --handler-paths {folder}"
            f" --compositions {profiles} --web-fetch-private true"
        )
        yield terminal.home / ".local" / "state" / "remit"


def add_server(home: Path) -> None:
    """An upstream server with one tool."""
    state = home / ".local" / "state" / "remit"
    state.mkdir(parents=True, mode=0o700)
    tools = [{"name": "take_note", "inputSchema": {"type": "object"}}]
    (home / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    script = ROOT / "tests" / "features" / "upstreams" / "client" / "servers" / "of_file.py"
    entry = {"command": sys.executable, "args": ["-S", str(script), str(home / "tools.json")]}
    text = json.dumps({"upstreams": {"notes": entry}})
    (state / "upstreams.yaml").write_text(text, encoding="utf-8")


def test_every_event_of_the_reference_is_called() -> None:
    assert {event for event, _ in CALLS} == set(_answers())


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """Where a web server listens; what it answers does not matter."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield str(server.server_port)
        server.shutdown()


def test_answers_have_the_documented_fields_and_no_others(home: Path, port: str) -> None:
    seen: dict[str, set[str]] = {}
    with remit_client.sync.connect(home=home) as remit:
        for event, data in CALLS:
            if event == "web:web_fetch":
                data = {"url": data["url"].replace("PORT", port)}  # noqa: PLW2901
            if event == "key:revoke_token":
                data = {"id": remit.call("key:tokens")["items"][0]["id"]}  # noqa: PLW2901
            if event == "mission:end":
                needs = {"needs": ["state:get"], "bind": True}
                data = {"mission": remit.call("link:mission", needs)["mission"]}  # noqa: PLW2901
            fields = set(remit.call(event, data))
            always = {field for field in _answers()[event] if not field.endswith("?")}
            known = {field.removesuffix("?") for field in _answers()[event]}
            assert always <= fields <= known, (event, data)
            seen.setdefault(event, set()).update(fields)
    documented = {
        event: {field.removesuffix("?") for field in fields} for event, fields in _answers().items()
    }
    assert seen == documented


def _answers() -> dict[str, list[str]]:
    """The fields that each event's `Answer:` names."""
    found = {}
    for event, text in sections(ROOT / "docs" / "reference" / "events.md").items():
        if "Pushed, not called." in text:
            continue
        (shape, *_) = codes(text.partition("Answer: ")[2])
        found[event] = shape.strip("{}").split(", ")
    return found
