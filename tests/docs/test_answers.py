"""The answers of events have the fields that the reference names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import ROOT, codes, sections
from tests.docs.terminal import Terminal, open_terminal

import remit_client.sync
from remit_client.keys import new_key

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("agent:spawn", {"profile": "communicator", "agent_id": "ann"}),
    ("agent:list", {}),
    ("agent:send_message", {"agent_id": "ann", "message": "hello"}),
    ("agent:status", {"agent_id": "ann"}),
    ("agent:update", {"agent_id": "ann", "profile": "minimal"}),
    ("agent:terminate", {"agent_id": "ann"}),
    ("audit:query", {}),
    ("audit:verify", {}),
    ("capability:get", {"id": "base"}),
    ("capability:list", {}),
    ("capability:of_event", {"event": "state:get"}),
    ("composition:get", {"name": "observer"}),
    ("composition:list", {}),
    ("composition:migrate", {"name": "base_multi_agent_explicit"}),
    ("composition:plan", {}),
    ("composition:resolve", {"profile": "observer"}),
    ("composition:validate", {}),
    ("config:plan", {}),
    ("config:reload", {}),
    ("conversation:active", {}),
    ("conversation:create", {}),
    ("event:subscribe", {"patterns": ["state:*"]}),
    ("event:unsubscribe", {"patterns": ["state:*"]}),
    ("key:add", {"name": "eve", "public_key": new_key("eve").public_key, "profile": "minimal"}),
    ("key:list", {}),
    ("key:revoke", {"name": "eve"}),
    ("message:publish", {"channel": "team", "data": 1}),
    ("message:subscribe", {"channels": ["team"]}),
    ("message:subscriptions", {}),
    ("message:unsubscribe", {"channels": ["team"]}),
    ("permission:check", {"event": "state:get"}),
    ("permission:check_many", {"events": ["state:get"]}),
    ("permission:explain", {"event": "state:get", "profile": "minimal"}),
    ("permission:matrix", {}),
    ("review:list", {}),
    ("review:decide", {"id": "orchestrator/network_access", "decision": "approve"}),
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
]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    terminal: Terminal
    with open_terminal() as terminal:
        terminal.run("remit serve")
        yield terminal.home / ".local" / "state" / "remit"


def test_every_event_of_the_reference_is_called() -> None:
    assert {event for event, _ in CALLS} == set(_answers())


def test_answers_have_the_documented_fields_and_no_others(home: Path) -> None:
    seen: dict[str, set[str]] = {}
    with remit_client.sync.connect(home=home) as remit:
        for event, data in CALLS:
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
