"""A daemon where everything that has a name exists once out of an agent's sight.

The agent `probe` holds every built-in event, and none of `hush:*`. All that it may not see has
`hush` in its name; what has `husx` there does not exist, and is as far from every other name.
"""

import json
import re
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
from tests.acceptance.site import PATIENCE, Daemon, Site, new_site
from tests.acceptance.upstream_site import Outside, tool
from tests.fakes import built_in_handlers

from remit_client import RemitError
from remit_client.sync import Client, connect

MODULE = '''
from remit.kernel.dispatch.registry import event_handler


@event_handler("hush:look", capability="hush_cap", wildcard=False, aliases=["hush:old"])
def look() -> None:
    """Look."""


@event_handler("hush:review", capability="hush_review", wildcard=False)
def review() -> None:
    """Review."""


@event_handler("hush:wait", capability="hush_cap", wildcard=False, approval=True)
def wait() -> None:
    """Wait."""
'''
CATALOGUE = """
  hush_cap:
    description: Nothing that others hear of
    category: hush
    event_patterns: [hush:look, hush:wait, "mcp:hush:*"]
    claude_tools: [hushTool]
    aliases: [hush_alias]
    skills: [hush-skill]
  hush_review:
    description: Waits for a review
    event_patterns: [hush:review]
    security_review_required: true
"""
OWNER = "extends: coordinator\ncapabilities: {hush_cap: true, hush_review: true, sessions: true}\n"
SKILL = "---\nname: NAME\ndescription: Look into it\n---\nLook.\n"
EXTENSION = """
extensions:
  - name: hush-extension
    description: Hidden
    module: hush_module
    events: [hush:look]
"""


class Hidden:
    """The daemon, its probe and what is hidden, by kind."""

    def __init__(self, daemon: Daemon, probe: Client, token: str) -> None:
        self.daemon = daemon
        self.probe = probe
        self.token = token
        self.names: dict[str, list[str]] = {}

    @property
    def url(self) -> str:
        return str(self.daemon.ready["endpoints"]["http"])

    def http(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE)


def twin(name: str) -> str:
    """A name that nothing has, and that is as far from all others."""
    if "hush" in name:
        return name.replace("hush", "husx")
    return name[:-1] + ("0" if name[-1] != "0" else "1")


def shown(answer: Any, name: str, other: str) -> Any:
    """An answer without what differs from call to call, with one name in the place of both."""
    text = json.dumps(_steady(answer), sort_keys=True)
    for one in (name, other):
        text = text.replace(json.dumps(one)[1:-1], "NAME")
    return text.replace("husx", "hush")


VOLATILE = frozenset({
    "at", "bill", "conversation", "channel", "created_at", "credentials", "decision", "previous",
    "expires_at", "hash", "opened_at", "position", "public_key", "requested_at", "revision",
    "seq", "token", "updated_at", "uptime", "version", "definition_hash", "calls_last_minute",
})  # fmt: skip


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "…" if key in VOLATILE else _steady(one) for key, one in value.items()}
    return [_steady(one) for one in value] if isinstance(value, list | tuple) else value


@contextmanager
def hidden_world() -> Generator[Hidden]:
    with new_site() as site, ExitStack() as stack:
        outside = Outside(site)
        outside.add("hush", tool("hush_tool"))
        site.configure(
            http="127.0.0.1:0", capability_dirs=["skills"], handlers=["hush_module"],
            approval_wait=0.01
        )  # fmt: skip
        _define(site)
        daemon = stack.enter_context(site.serving())
        probe = stack.enter_context(connect(home=daemon.home, key=daemon.new_key("probe", "probe")))
        operator = stack.enter_context(daemon.operator())
        token = operator.call("key:token", {"name": "probe"})["token"]
        world = Hidden(daemon, probe, token)
        owner_key = daemon.new_key("hush-key", "hush_profile")
        owner = stack.enter_context(connect(home=daemon.home, key=owner_key))
        world.names = _populate(operator, owner)
        _own(probe)
        yield world


def _define(site: Site) -> None:
    site.add_module("hush_module", MODULE)
    with site.catalogue.open("a", encoding="utf-8") as catalogue:
        catalogue.write(CATALOGUE)
    site.add_profile("hush_profile", OWNER)
    held = sorted(built_in_handlers())
    site.add_profile("probe", f"additional_tools: {json.dumps(held)}\n")
    for name in ("hush-skill", "open-skill"):
        folder = site.folder / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.replace("NAME", name), encoding="utf-8")


def _populate(operator: Client, owner: Client) -> dict[str, list[str]]:
    """Make one of each kind out of the probe's sight; answers their names."""
    operator.call("agent:spawn", {"agent_id": "hush-agent", "profile": "hush_profile"})
    owner.call("agent:spawn", {"agent_id": "hush-kid", "inherit": True})
    operator.call("agent:spawn", {"agent_id": "hush-gone"})
    operator.call("agent:terminate", {"agent_id": "hush-gone"})
    operator.call("agent:spawn", {"agent_id": "hush-lone", "capabilities": ["hush_review"]})
    owner.call("session:open", {"session": "hush-session"})
    owner.call("session:open", {"session": "hush-closed"})
    owner.call("session:close", {"session": "hush-closed"})
    talk = owner.call("conversation:create", {"name": "hush"})
    operator.call("capability:create", MADE)
    review = refused(owner, "hush:wait")["review"]
    made = operator.call("key:token", {"name": "hush-key"})
    rows = operator.call("audit:query", {"agent": "hush-key"})["items"]
    return {
        "agent": ["hush-agent", "hush-key", "hush-kid", "hush-gone", "hush-lone"],
        "key": ["hush-key"],
        "profile": ["hush_profile"],
        "profile file": ["hush_profile.yaml"],
        "capability": ["hush_cap", "hush_alias", "hush_review", "hush_made"],
        "session": ["hush-session", "hush-closed"],
        "event": ["hush:look", "hush:old", "mcp:hush:hush_tool"],
        "pattern": ["hush:look", "hush:*", "mcp:hush:*"],
        "tool": ["hush:look", "hush:*", "hushTool", "mcp:hush:hush_tool"],
        "model tool": ["hushTool"],
        "namespace": ["hush"],
        "module": ["hush_module"],
        "category": ["hush"],
        "channel": [talk["channel"]],
        "skill": ["hush-skill", "skill:hush-skill"],
        "thing": ["tool:hush:look", "hush:look", "skill:hush-skill", "hush-skill"],
        "extension": ["hush-extension", "extension:hush-extension"],
        "upstream": ["hush"],
        "review": [
            review,
            "hush_profile/hush_review",
            "agent:hush-lone/hush_review",
            "hush-lone/hush_review",
            "card:hush",
            "tool:hush/hush_tool",
            "tool:hush/*",
        ],
        "call": [review],
        "token": [made["id"]],
        "decision": [rows[0]["decision"]],
        "page": ["hush"],
    }


MADE = {"id": "hush_made", "description": "Made", "event_patterns": ["hush:look"]}


def _own(probe: Client) -> None:
    """What the probe has itself, where a request needs something that is there."""
    probe.call("agent:spawn", {"agent_id": "probe-kid", "profile": "minimal"})
    probe.call("session:open", {"session": "probe-session"})
    own = {"id": "probe_made", "description": "Made", "event_patterns": ["state:get"]}
    probe.call("capability:create", own)


def refused(client: Client, event: str, data: Any = None) -> dict[str, Any]:
    try:
        client.call(event, data)
    except RemitError as error:
        return error.details
    raise AssertionError(event)


def told(client: Client, event: str, data: Any) -> Any:
    """All that comes back, answers and failures alike."""
    try:
        answer = client.ask(event, data)
    except RemitError as error:
        return {"failure": [error.code, error.message, error.hint, error.details]}
    return {"ok": answer.data, "warnings": answer.warnings}


def without_suffix(text: str, names: Iterable[str]) -> str:
    """An answer whose names for something new are as they were asked for."""
    for name in names:
        text = re.sub(rf"{re.escape(name)}-[0-9a-f]{{6}}", name, text)
    return text
