"""A daemon that serves what the conformance suite asks for, to whoever comes over loopback."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.site import Daemon, Site, eventually, new_site

from remit_client.sync import Client

HERE = Path(__file__).parent
AGENT = "conformance"
STARTING = 60.0
"""Seconds until a test gives up on a server of others, on a machine with much to do."""
CAPABILITIES = """
  conformance:
    description: What the conformance suite asks for
    event_patterns: ["test:*", "mcp:conformance:*"]
  conformance_reload:
    description: Put edits in force
    event_patterns: [config:reload, discovery:refresh]
    mcp_tools: false
"""
PROFILE = """
description: The tools of the conformance suite
capabilities: [conformance, conformance_reload]
"""
SKILL = """---
name: {name}
description: {summary}
---
Look up the harbour in references/harbours.md, then do it.
"""
SUMMARIES = {
    "skills/read-tides": "Read a table of tides and tell when the water is high",
    "kept/count-boats": "Count the boats in the harbour",
}
"""By the folder of a skill; the second one is not served until a tool moves it."""


def prepare(site: Site) -> None:
    """Write everything that the daemon reads."""
    text = (HERE / "conformance_events.py").read_text(encoding="utf-8")
    site.add_module("conformance_events", text)
    catalogue = site.catalogue.read_text(encoding="utf-8")
    site.catalogue.write_text(catalogue + CAPABILITIES, encoding="utf-8")
    site.add_profile("conformance", PROFILE)
    for place, summary in SUMMARIES.items():
        skill = site.folder / place
        (skill / "references").mkdir(parents=True)
        text = SKILL.format(name=skill.name, summary=summary)
        (skill / "SKILL.md").write_text(text, encoding="utf-8")
        (skill / "references" / "harbours.md").write_text("# Harbours\n\nHusum\n")
    server = {
        "command": sys.executable,
        "args": [str(HERE / "conformance_upstream.py")],
        "trust": "on_first_use",
        "start": "eager",
    }
    entries = {"version": 1, "upstreams": {"conformance": server}}
    (site.folder / "upstreams.yaml").write_text(json.dumps(entries), encoding="utf-8")
    site.configure(
        handlers=["conformance_events"],
        handler_paths=["."],
        capability_dirs=["skills"],
        upstreams="upstreams.yaml",
        http="127.0.0.1:0",
        mcp_anonymous=AGENT,
    )


@contextmanager
def conformance_daemon() -> Generator[Daemon]:
    """Run it, with the agent that nameless callers are."""
    with new_site() as site:
        prepare(site)
        with site.serving() as daemon:
            daemon.new_key(AGENT, "conformance")
            with daemon.operator() as operator:
                eventually(lambda: borrowed(operator), lambda count: count == 1, seconds=STARTING)
            yield daemon


def borrowed(operator: Client) -> int:
    """How many tools of upstream servers are served."""
    return int(operator.call("system:discover", {"namespace": "mcp"})["total"])


def mcp_url(daemon: Daemon) -> str:
    """Where it serves MCP."""
    return f"{daemon.ready['endpoints']['http']}/mcp"
